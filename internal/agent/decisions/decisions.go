// SPDX-License-Identifier: Apache-2.0

package decisions

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"homenode/internal/action"
	"homenode/internal/schema"
	"homenode/internal/set"
	"homenode/internal/window"
)

// Schema is the version of a line. Readers skip newer ones, and report that. In version 2
// the reason is a code and figures.
const Schema = 2

// NoAction is the kind of a decision to do nothing.
const NoAction action.Kind = "none"

// WayKind is the kind of a decision about a binding that is under way: what is set
// first, and what came of it.
const WayKind action.Kind = "way"

// Entry is one decision.
type Entry struct {
	Schema   int           `json:"schema"`
	At       time.Time     `json:"at"` // end of the window of the decision
	Seq      uint64        `json:"seq"`
	Action   string        `json:"action"` // as Action.String prints it
	Kind     action.Kind   `json:"kind"`
	Workload string        `json:"workload"`
	Service  string        `json:"service,omitempty"`
	Nodes    set.NodeSet   `json:"nodes,omitzero"`
	DryRun   bool          `json:"dry_run,omitempty"`
	Reason   action.Reason `json:"reason"`
}

// Validate returns what is invalid in an entry.
func (e Entry) Validate() error {
	switch {
	case e.Schema != Schema:
		return fmt.Errorf("schema %d: want %d", e.Schema, Schema)
	case e.Kind == "" || e.Workload == "" || e.Reason.Rule == "":
		return errors.New("want kind, workload and the reason's rule")
	}
	return nil
}

// Ways makes the entries of the decisions about bindings that are under way.
func Ways(w window.Window, news []action.Reason) (all []Entry) {
	for _, r := range news {
		all = append(all, entry(w, WayKind, WayOf(r), set.NodeSet{}, r))
	}
	return all
}

// WayOf is the action of such an entry.
func WayOf(r action.Reason) string { return "way of " + schema.Name(r.Workload) }

// Of makes the entries of one window: its actions, and the workloads for which no
// place was found, if before has another rule for them. It returns the value to
// pass as before with the next window.
func Of(w window.Window, actions []action.Action, reasons []action.Reason, before map[string]string) ([]Entry, map[string]string) {
	var all []Entry
	acted := map[string]bool{}
	for _, x := range action.Decided(actions) {
		acted[x.Workload] = true
		x.Workload = schema.Name(x.Workload)
		all = append(all, entry(w, x.Kind, x.String(), x.Nodes, x.Reason))
	}
	refused := map[string]string{}
	for _, r := range reasons {
		if len(r.Alternatives) == 0 || acted[r.Workload] {
			continue
		}
		refused[r.Workload] = r.Rule
		if before[r.Workload] != r.Rule {
			all = append(all, entry(w, NoAction, "leave "+schema.Name(r.Workload)+" as it is", set.NodeSet{}, r))
		}
	}
	return all, refused
}

func entry(w window.Window, kind action.Kind, words string, nodes set.NodeSet, r action.Reason) Entry {
	wl, _ := w.Workload(r.Workload)
	return Entry{
		Schema: Schema, At: w.At, Seq: w.Seq, Action: words, Kind: kind, Workload: schema.Name(r.Workload), Service: wl.Service, Nodes: nodes, Reason: r.Renamed(schema.Name),
	}
}

// Write appends an entry as one line.
func Write(w io.Writer, e Entry) error {
	line, err := schema.Encode(e, "decision")
	if err != nil {
		return err
	}
	_, err = w.Write(append(line, '\n'))
	return err
}

// Decode reads one line. It accepts unknown fields: new programs read old lines, and
// old programs read new ones.
func Decode(line []byte) (Entry, error) {
	var e Entry
	if err := json.Unmarshal(line, &e); err != nil {
		return Entry{}, fmt.Errorf("parse decision: %w", err)
	}
	if e.Schema > Schema {
		return Entry{}, fmt.Errorf("parse decision: schema %d, this homenode reads up to %d: %w", e.Schema, Schema, schema.ErrNewer)
	}
	if err := e.Validate(); err != nil {
		return Entry{}, fmt.Errorf("parse decision: %w", err)
	}
	return e, nil
}

// maxLine bounds the memory that a damaged file may cost: alternatives of 64 nodes
// are 20 kB.
const maxLine = 1 << 20

// Key is what entries are searched by: the small part of each line that is always
// read.
type Key struct {
	Schema   int         `json:"schema"`
	At       time.Time   `json:"at"`
	Kind     action.Kind `json:"kind"`
	Workload string      `json:"workload"`
	Service  string      `json:"service"`
	Reason   struct {
		Rule string `json:"rule"`
	} `json:"reason"`
}

// says reports whether the line is an entry, as far as its key shows.
func (k Key) says() bool {
	return Entry{Schema: k.Schema, Kind: k.Kind, Workload: k.Workload, Reason: action.Reason{Rule: k.Reason.Rule}}.Validate() == nil
}

// mostBytes bounds what is kept of a log while some of its entries are searched.
const mostBytes = 16 << 20

// Read returns the newest entries that match, oldest first, from path and the older
// files beside it; at most `most` of them (0: all). Lines that are not entries are
// counted and are not an error: a crash of the machine leaves such lines. Without any
// file the error is fs.ErrNotExist. Memory is used for the returned entries, not for
// the files.
func Read(path string, match func(Key) bool, most int) (found []Entry, skipped int, err error) {
	files := 0
	for i := range oldest(path) + 1 {
		left := 0
		if most > 0 {
			left = most - len(found)
		}
		part, bad, err := readFile(OlderFile(path, i), match, left)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, 0, err
		}
		files++
		skipped += bad
		found = append(part, found...)
		if most > 0 && len(found) >= most {
			return found, skipped, nil
		}
	}
	if files == 0 {
		return nil, 0, fmt.Errorf("read %s: %w", path, fs.ErrNotExist)
	}
	return found, skipped, nil
}

// oldest is the number of the oldest file. A missing file (it is being rotated) does
// not end the search.
func oldest(path string) int {
	const most = 1000 // as many as a configuration may ask for
	last := 0
	for i := 1; i <= most && i <= last+2; i++ {
		if _, err := os.Stat(OlderFile(path, i)); err == nil {
			last = i
		}
	}
	return last
}

func readFile(path string, match func(Key) bool, most int) (found []Entry, skipped int, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, 0, fmt.Errorf("read decisions: %w", err)
	}
	defer f.Close()
	found, skipped, err = Scan(f, match, most)
	if err != nil {
		return nil, 0, fmt.Errorf("read %s: %w", path, err)
	}
	return found, skipped, nil
}

// Scan reads the last entries that match from lines, at most `most` of them (0:
// all).
func Scan(r io.Reader, match func(Key) bool, most int) (found []Entry, skipped int, err error) {
	in := bufio.NewReaderSize(r, 64<<10)
	last := newest{most: most}
	var buf []byte
	for {
		line, tooLong, err := nextLine(in, buf[:0])
		if len(bytes.TrimSpace(line)) > 0 || tooLong {
			var k Key
			switch {
			case tooLong || json.Unmarshal(line, &k) != nil || !k.says():
				skipped++
			case match(k):
				last.keep(line)
			}
		}
		buf = line
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, 0, err
		}
	}
	for _, line := range last.inOrder() {
		if e, err := Decode(line); err != nil {
			skipped++
		} else {
			found = append(found, e)
		}
	}
	return found, skipped, nil
}

// newest keeps copies of the last lines as text: a decoded entry is several times as
// large.
type newest struct {
	most  int // 0: all
	lines [][]byte
	first int // index of the oldest
	bytes int
}

func (n *newest) keep(line []byte) {
	n.bytes += len(line)
	if n.most == 0 || len(n.lines) < n.most {
		n.lines = append(n.lines, bytes.Clone(line))
	} else { // replace the oldest one
		n.bytes -= len(n.lines[n.first])
		n.lines[n.first] = append(n.lines[n.first][:0], line...)
		n.first = (n.first + 1) % n.most
	}
	if n.most > 0 && n.bytes > mostBytes {
		n.halve()
	}
}

// halve drops the older half if the lines are longer than any that homenode
// writes.
func (n *newest) halve() {
	all := n.inOrder()
	n.lines, n.first, n.bytes = append([][]byte(nil), all[(len(all)+1)/2:]...), 0, 0
	for _, line := range n.lines {
		n.bytes += len(line)
	}
}

func (n *newest) inOrder() [][]byte {
	return append(n.lines[n.first:len(n.lines):len(n.lines)], n.lines[:n.first]...)
}

// nextLine appends a line to buf. It drops a line that is longer than any
// entry.
func nextLine(in *bufio.Reader, buf []byte) (line []byte, tooLong bool, err error) {
	line = buf
	for {
		part, err := in.ReadSlice('\n')
		if len(line)+len(part) > maxLine {
			line, tooLong = line[:0], true
		} else if !tooLong {
			line = append(line, part...)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, tooLong, err
		}
	}
}
