// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"sync"
)

// portName is the virtio-serial port between host and guest.
const portName = "homenode.0"

// frame is one message, a line of JSON. Requests and replies share it; a
// request of id n is answered by any number of frames with Line and one with
// Done, all of id n.
type frame struct {
	ID   uint64   `json:"id"`
	Op   string   `json:"op,omitempty"`   // "run", "end", "put", "fetch", "hello", "stop"
	Of   uint64   `json:"of,omitempty"`   // end: the run to end
	Argv []string `json:"argv,omitempty"` // run
	Path string   `json:"path,omitempty"` // put, fetch
	Data []byte   `json:"data,omitempty"` // put; at most maxPut bytes
	Mode uint32   `json:"mode,omitempty"` // put
	Line string   `json:"line,omitempty"` // run: a line of the program's stderr, as it comes; hello: Guest.Note
	Done bool     `json:"done,omitempty"`
	Exit int      `json:"exit,omitempty"` // run
	Out  string   `json:"out,omitempty"`  // run: all of stdout; end: stdout so far
	Err  string   `json:"err,omitempty"`
	// fetch: where on the result disk the file lies
	Offset int64  `json:"offset,omitempty"`
	Size   int64  `json:"size,omitempty"`
	CRC    uint32 `json:"crc,omitempty"` // IEEE
}

// maxFrame bounds one line: a megabyte of base64 and its frame.
const (
	maxPut   = 1 << 20
	maxFrame = 4 << 20
)

// wireWriter writes frames; many goroutines may.
type wireWriter struct {
	mu sync.Mutex
	w  io.Writer
}

func (w *wireWriter) send(f frame) error {
	line, err := json.Marshal(f)
	if err != nil {
		return fmt.Errorf("encode frame: %w", err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, err := w.w.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("write frame: %w", err)
	}
	return nil
}

// readFrames calls each with every frame until r ends or each returns false.
func readFrames(r io.Reader, each func(frame) bool) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 64<<10), maxFrame)
	for lines.Scan() {
		f, err := parseFrame(lines.Bytes())
		if err != nil {
			return err
		}
		if !each(f) {
			return nil
		}
	}
	return lines.Err()
}

func parseFrame(line []byte) (frame, error) {
	var f frame
	if err := json.Unmarshal(line, &f); err != nil {
		return frame{}, fmt.Errorf("parse frame %.80q: %w", line, err)
	}
	return f, nil
}
