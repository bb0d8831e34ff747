// SPDX-License-Identifier: Apache-2.0

package window

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"homenode/internal/machine"
)

// A recording is a file of JSON lines: a header, then one window a line.
//
//	{"schema":1,"kind":"homenode-windows","period_ns":2000000000,"machine":{…}}
//	{"schema":1,"seq":1,"at":…,"nodes":[…],"workloads":[…]}
//
// Nothing in it names the host it comes from, but the paths of its cgroups.
// The machine is the one at the start; CPUs that went off- or online since are
// in the windows.

const (
	// RecordingSchema is the version of the header. Readers refuse a newer one.
	RecordingSchema = 1
	recordingKind   = "homenode-windows"

	// A window of 16 nodes and 1000 workloads is about 3 MiB. More would let a
	// malformed file take more memory, less would refuse large hosts.
	maxRecordingLine = 16 << 20
	// A day of 2 s windows is 43200.
	maxRecordingWindows = 100_000
	// Decoded, a recording takes some two times its text.
	maxRecordingBytes = 1 << 30
)

// Recording is what a host did, window by window.
type Recording struct {
	Machine machine.Machine
	Period  time.Duration // that was asked for; each window tells its own length
	Windows []Window
	// CutOff says that the last line is no whole window, in a sentence; "" if it
	// is. So ends a recording that was killed.
	CutOff string
}

type recordingHeader struct {
	Schema  int             `json:"schema"`
	Kind    string          `json:"kind"`
	Period  time.Duration   `json:"period_ns"`
	Machine machine.Machine `json:"machine"`
}

// Recorder writes a recording. Every Add is one Write of one whole line, so that
// a kill leaves all windows before it.
type Recorder struct{ w io.Writer }

// NewRecorder writes the header.
func NewRecorder(w io.Writer, m machine.Machine, period time.Duration) (*Recorder, error) {
	line, err := json.Marshal(recordingHeader{Schema: RecordingSchema, Kind: recordingKind, Period: period, Machine: m})
	if err != nil {
		return nil, fmt.Errorf("write recording: header: %w", err)
	}
	r := &Recorder{w}
	return r, r.line(line)
}

// Add writes one window.
func (r *Recorder) Add(w Window) error {
	line, err := Encode(w)
	if err != nil {
		return fmt.Errorf("write recording: %w", err)
	}
	return r.line(line)
}

func (r *Recorder) line(line []byte) error {
	if len(line) >= maxRecordingLine {
		return fmt.Errorf("write recording: a line of %d bytes is longer than %d, which no reader takes", len(line), maxRecordingLine)
	}
	if _, err := r.w.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("write recording: %w", err)
	}
	return nil
}

// ReadRecording reads a whole recording, gzipped or not. An error names the line,
// and on error the recording is the zero Recording. Only the last line may be cut
// off.
func ReadRecording(r io.Reader) (Recording, error) {
	in, err := unzipped(bufio.NewReaderSize(r, 64<<10))
	if err != nil {
		return Recording{}, fmt.Errorf("read recording: %w", err)
	}
	var rec Recording
	total := 0
	for number := 1; ; number++ {
		line, err := readLine(in)
		whole := err == nil
		if errors.Is(err, io.ErrUnexpectedEOF) && len(line) == 0 && number > 1 {
			rec.CutOff = fmt.Sprintf("its gzip stream is cut off after line %d", number-1)
			return rec, nil
		}
		if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
			return Recording{}, fmt.Errorf("read recording: line %d: %w", number, err)
		}
		if !whole && len(line) == 0 && number > 1 {
			return rec, nil
		}
		if total += len(line); total > maxRecordingBytes {
			return Recording{}, fmt.Errorf("read recording: line %d: more than %d bytes in all: record for a shorter time", number, maxRecordingBytes)
		}
		err = rec.take(number, line)
		if err != nil && !whole && number > 1 && !errors.Is(err, ErrNewer) {
			rec.CutOff = fmt.Sprintf("line %d is cut off after %d bytes: the recording ended within a window", number, len(line))
			return rec, nil
		}
		if err != nil {
			return Recording{}, fmt.Errorf("read recording: line %d %q: %w", number, clip(line), err)
		}
	}
}

// unzipped goes by gzip's magic bytes (RFC 1952, section 2.3.1).
func unzipped(in *bufio.Reader) (*bufio.Reader, error) {
	if magic, _ := in.Peek(2); !bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		return in, nil
	}
	z, err := gzip.NewReader(in)
	if err != nil {
		return nil, fmt.Errorf("it begins as gzip does, but is not: %w", err)
	}
	return bufio.NewReaderSize(z, 64<<10), nil
}

// readLine returns a line without its newline; io.EOF with the last one, if that
// has no newline, and io.ErrUnexpectedEOF where a gzip stream is cut off.
func readLine(in *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := in.ReadSlice('\n')
		if line = append(line, part...); len(line) > maxRecordingLine {
			return nil, fmt.Errorf("longer than %d bytes", maxRecordingLine)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return bytes.TrimSuffix(line, []byte("\n")), err
		}
	}
}

// take reads one line: the header, or a window.
func (r *Recording) take(number int, line []byte) error {
	if number == 1 {
		return r.header(line)
	}
	if len(r.Windows) == maxRecordingWindows {
		return fmt.Errorf("more than %d windows: record for a shorter time", maxRecordingWindows)
	}
	w, err := Decode(line)
	if err == nil {
		r.Windows = append(r.Windows, w)
	}
	return err
}

func (r *Recording) header(line []byte) error {
	var head struct {
		Schema int    `json:"schema"`
		Kind   string `json:"kind"`
	}
	if err := json.Unmarshal(line, &head); err != nil {
		return fmt.Errorf("no header of a recording: %w", err)
	}
	switch {
	case head.Kind != recordingKind:
		return fmt.Errorf("kind is %q: want %q, as 'homenode record --windows' writes it", head.Kind, recordingKind)
	case head.Schema > RecordingSchema:
		return fmt.Errorf("schema %d, this homenode reads up to %d: %w", head.Schema, RecordingSchema, ErrNewer)
	case head.Schema < 1:
		return fmt.Errorf("schema %d: want 1 to %d", head.Schema, RecordingSchema)
	}
	var h recordingHeader
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	if err := d.Decode(&h); err != nil {
		return fmt.Errorf("header: %w", err)
	}
	if err := checkMachine(h.Machine); err != nil {
		return fmt.Errorf("header: %w", err)
	}
	if h.Period < 0 {
		return fmt.Errorf("header: period %v is negative", h.Period)
	}
	r.Machine, r.Period = h.Machine, h.Period
	return nil
}

// checkMachine holds what Machine's methods rely on: nodes and CPUs ascend.
func checkMachine(m machine.Machine) error {
	for i, n := range m.Nodes {
		if n.ID < 0 || i > 0 && n.ID <= m.Nodes[i-1].ID {
			return fmt.Errorf("machine: node %d at position %d: ids must ascend from 0", n.ID, i)
		}
	}
	for i, c := range m.CPUs {
		if c.ID < 0 || i > 0 && c.ID <= m.CPUs[i-1].ID {
			return fmt.Errorf("machine: cpu %d at position %d: ids must ascend from 0", c.ID, i)
		}
	}
	return nil
}

// clip keeps an error message short.
func clip(line []byte) string {
	const most = 60
	if len(line) > most {
		return string(line[:most]) + "…"
	}
	return string(line)
}
