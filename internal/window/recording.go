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
	"homenode/internal/schema"
)

// A recording is a file of JSON lines: a header, then one window a line.
//
//	{"schema":1,"kind":"homenode-windows","period_ns":2000000000,"machine":{…}}
//	{"schema":1,"seq":1,"at":…,"nodes":[…],"workloads":[…]}
//
// It does not name its host. It has the paths of the host's cgroups, and what the owner
// wrote into the agent's configuration, which the header may have as text. The machine is
// the one at the start; the windows show CPUs that went off- or online since.

const (
	// RecordingSchema is the version of the header. Readers refuse a newer one. 2 is a
	// header with a configuration.
	RecordingSchema = 2
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
	Period  time.Duration // the configured period; each window has its own length
	Config  string        // the agent's configuration file then; "": unknown
	Windows []Window
	// CutOff says in a sentence that the last line is not a whole window; "" if it is.
	// The recording of a killed process ends so.
	CutOff string
}

type recordingHeader struct {
	Schema  int             `json:"schema"`
	Kind    string          `json:"kind"`
	Period  time.Duration   `json:"period_ns"`
	Machine machine.Machine `json:"machine"`
	Config  string          `json:"config,omitempty"`
}

// Recorder writes a recording. Every Add is one Write of one whole line, so that
// a kill leaves all windows before it.
type Recorder struct{ w io.Writer }

// NewRecorder writes the header.
func NewRecorder(w io.Writer, m machine.Machine, period time.Duration) (*Recorder, error) {
	return NewRecorderOf(w, m, period, "")
}

// NewRecorderOf writes a header with the configuration file that was in force.
func NewRecorderOf(w io.Writer, m machine.Machine, period time.Duration, config string) (*Recorder, error) {
	r := &Recorder{w}
	return r, r.Header(m, period, config)
}

// Header writes the first line. A header without a configuration stays readable for older
// programs.
func (r *Recorder) Header(m machine.Machine, period time.Duration, config string) error {
	h := recordingHeader{Schema: 1, Kind: recordingKind, Period: period, Machine: m, Config: config}
	if config != "" {
		h.Schema = RecordingSchema
	}
	var line bytes.Buffer
	if err := schema.NewEncoder(&line).Encode(h); err != nil {
		return fmt.Errorf("write recording: header: %w", err)
	}
	return r.line(bytes.TrimSuffix(line.Bytes(), []byte("\n")))
}

// RecorderTo continues a file that has its header.
func RecorderTo(w io.Writer) *Recorder { return &Recorder{w} }

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

// ReadRecording reads a whole recording, gzipped or not. An error names the line, and the
// recording is then the zero Recording. Only the last line may be cut off.
func ReadRecording(r io.Reader) (Recording, error) {
	p, err := OpenRecording(r)
	if err != nil {
		return Recording{}, err
	}
	rec := Recording{Machine: p.Machine, Period: p.Period, Config: p.Config}
	for {
		w, err := p.Next()
		if errors.Is(err, io.EOF) {
			rec.CutOff = p.CutOff
			return rec, nil
		}
		if err != nil {
			return Recording{}, err
		}
		if p.bytes > maxRecordingBytes {
			return Recording{}, fmt.Errorf("read recording: line %d: more than %d bytes in all: record for a shorter time", p.number, maxRecordingBytes)
		}
		if len(rec.Windows) == maxRecordingWindows {
			return Recording{}, fmt.Errorf("read recording: line %d: more than %d windows: record for a shorter time", p.number, maxRecordingWindows)
		}
		rec.Windows = append(rec.Windows, w)
	}
}

// Player reads a recording of any length window by window, with the memory of one window.
type Player struct {
	Recording // without Windows; CutOff is known at the end
	in        *bufio.Reader
	number    int // of the line read last
	bytes     int
	ended     bool
}

// OpenRecording reads the header.
func OpenRecording(r io.Reader) (*Player, error) {
	in, err := unzipped(bufio.NewReaderSize(r, 64<<10))
	if err != nil {
		return nil, fmt.Errorf("read recording: %w", err)
	}
	p := &Player{in: in}
	line, _, err := p.line()
	if err != nil {
		return nil, wrong(p.number, nil, err)
	}
	if err := p.header(line); err != nil {
		return nil, wrong(p.number, append([]byte{}, line...), err)
	}
	return p, nil
}

// Next is the next window; io.EOF after the last. An error names the line. Only the last
// line may be cut off.
func (p *Player) Next() (Window, error) {
	raw, err := p.NextRaw()
	if err != nil {
		return Window{}, err
	}
	w, cutOff, err := raw.Window()
	if cutOff != "" {
		p.CutOff, p.ended = cutOff, true
		return Window{}, io.EOF
	}
	return w, err
}

// Raw is a line with a window that is not decoded yet. Decoding is most of the work: a
// caller in a hurry decodes several in parallel.
type Raw struct {
	Line   []byte
	Number int
	whole  bool // it ends with a newline
}

// NextRaw is Next without decoding.
func (p *Player) NextRaw() (Raw, error) {
	line, whole, err := p.nextLine()
	return Raw{Line: line, Number: p.number, whole: whole}, err
}

// Window decodes it. Where the recording was cut off within it, cutOff says so, and there
// is no window.
func (r Raw) Window() (w Window, cutOff string, err error) {
	w, err = Decode(r.Line)
	switch {
	case err == nil:
		return w, "", nil
	case !r.whole && !errors.Is(err, schema.ErrNewer):
		return Window{}, fmt.Sprintf("line %d is cut off after %d bytes: the recording ended within a window", r.Number, len(r.Line)), nil
	}
	return Window{}, "", wrong(r.Number, r.Line, err)
}

// nextLine is io.EOF at the end.
func (p *Player) nextLine() (line []byte, whole bool, err error) {
	if p.ended {
		return nil, false, io.EOF
	}
	line, whole, err = p.line()
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		p.CutOff, p.ended = fmt.Sprintf("its gzip stream is cut off after line %d", p.number-1), true
		return nil, false, io.EOF
	case err != nil:
		return nil, false, wrong(p.number, nil, err)
	case !whole && len(line) == 0:
		p.ended = true
		return nil, false, io.EOF
	}
	return line, whole, nil
}

// line reads one line. A last line without its newline is not an error; a gzip stream
// that is cut off is one if nothing of a line is left.
func (p *Player) line() (line []byte, whole bool, err error) {
	p.number++
	line, err = readLine(p.in)
	p.bytes += len(line)
	switch {
	case err == nil:
		return line, true, nil
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF) && len(line) > 0:
		return line, false, nil
	}
	return line, false, err
}

// wrong adds the line number. A line of another format is shown, as far as a message can.
func wrong(number int, line []byte, err error) error {
	if line == nil {
		return fmt.Errorf("read recording: line %d: %w", number, err)
	}
	return fmt.Errorf("read recording: line %d %q: %w", number, clip(line), err)
}

// unzipped detects gzip by its magic bytes (RFC 1952, section 2.3.1).
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
		return fmt.Errorf("schema %d, this homenode reads up to %d: %w", head.Schema, RecordingSchema, schema.ErrNewer)
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
	r.Machine, r.Period, r.Config = h.Machine, h.Period, h.Config
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
