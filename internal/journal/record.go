// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"strconv"
	"strings"
	"unicode/utf8"

	"homenode/internal/kernel"
)

// version 4 has checksums with the boot, numbers without gaps, and names of any bytes.
// Nothing was released before it: an older journal is refused, as a newer one is.
const version = 4

// kind is the kind of a record.
type kind string

const (
	kindBoot       kind = "boot"       // first record: which boot this is about
	kindIntent     kind = "intent"     // New is about to be written
	kindDone       kind = "done"       // New was written
	kindFailed     kind = "failed"     // New was not written
	kindEquivalent kind = "equivalent" // New was written, since Old could not be put back
	kindEnd        kind = "end"        // the setting no longer concerns us
)

// record is one line:
//
//	0000007d 1c291ca3 {"seq":3,"kind":"intent","cgroup":"/demo/a",…}
//
// It begins with the length of the JSON and a CRC-32 (IEEE) of the boot's id and the
// JSON, in hexadecimal. The CRC of the first line, which names the boot, covers only its
// own JSON. Numbers have no gaps: the first line has the number before the next line's.
type record struct {
	Seq      uint64 `json:"seq"`
	Kind     kind   `json:"kind"`
	Version  int    `json:"version,omitempty"` // kindBoot
	Boot     string `json:"boot,omitempty"`    // kindBoot
	Workload string `json:"workload,omitempty"`
	Setting
	ID  uint64 `json:"id,omitempty"`
	At  uint64 `json:"at,omitempty"` // kindIntent: what starts from then on may inherit New; 0: nothing does
	Old string `json:"old"`          // what was there before our first change
	New string `json:"new"`
	Why string `json:"why,omitempty"`
}

const prefix = 8 + 1 + 8 + 1

// line is the record on disk, in the journal of a boot.
func (r record) line(boot string) ([]byte, error) {
	if r.Kind == kindBoot {
		boot = ""
	}
	for _, text := range r.texts() {
		*text = written(*text)
	}
	text, err := json.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("write journal: %w", err)
	}
	return fmt.Appendf(nil, "%08x %08x %s\n", len(text), checksum(boot, text), text), nil
}

func checksum(boot string, text []byte) uint32 {
	return crc32.Update(crc32.ChecksumIEEE([]byte(boot)), crc32.IEEETable, text)
}

// texts are the fields that hold names and values.
func (r *record) texts() []*string {
	return []*string{&r.Workload, &r.Cgroup, &r.File, &r.Old, &r.New, &r.Why}
}

// asBytes begins a text that is written in hexadecimal. JSON cannot hold bytes that are
// not UTF-8, and a cgroup's name may have any byte but "/" and NUL. No name begins with a
// NUL; a text that did would be written in hexadecimal, too.
const asBytes = "\x00"

func written(s string) string {
	if utf8.ValidString(s) && !strings.HasPrefix(s, asBytes) {
		return s
	}
	return asBytes + hex.EncodeToString([]byte(s))
}

func (r *record) read() error {
	for _, text := range r.texts() {
		digits, ok := strings.CutPrefix(*text, asBytes)
		if !ok {
			continue
		}
		b, err := hex.DecodeString(digits)
		if err != nil {
			return err
		}
		*text = string(b)
	}
	return nil
}

// parseLine reads a line without its newline.
func parseLine(line []byte, boot string) (record, bool) {
	size, ok := sizeOf(line)
	if !ok || size != len(line)-prefix {
		return record{}, false
	}
	sum, err := strconv.ParseUint(string(line[9:17]), 16, 32)
	text := line[prefix:]
	var r record
	if err != nil || json.Unmarshal(text, &r) != nil || r.read() != nil {
		return record{}, false
	}
	if r.Kind == kindBoot {
		boot = ""
	}
	return r, uint32(sum) == checksum(boot, text)
}

// sizeOf is the length of the JSON that a line declares.
func sizeOf(line []byte) (int, bool) {
	if len(line) < prefix || line[8] != ' ' || line[17] != ' ' {
		return 0, false
	}
	size, err := strconv.ParseUint(string(line[:8]), 16, 31)
	return int(size), err == nil
}

// parsed is the content of a journal's text.
type parsed struct {
	records []record
	good    int      // where the last whole record ends: a torn write may follow
	unended bool     // the last one lacks its newline, and nothing else
	damage  []string // a sentence for each part that cannot be read
}

// parse reads a journal.
//
//  1. A last line without a newline that is shorter than it declares was torn by a crash
//     within a write. Nothing was done by it: a record comes before its write. The first
//     line is written with the file.
//  2. Any other text that is not a record is damage, and so is a gap in the numbers. The
//     records around it still say what must be put back.
//  3. The first line names the boot. Without it, records are of this boot if their
//     checksums are.
func parse(data []byte, boot string) (p parsed) {
	var last *record
	for n, at := 1, 0; at < len(data); n++ {
		line, end := cut(data[at:])
		r, ok := parseLine(line, boot)
		switch {
		case ok && n == 1 && r.Kind == kindBoot:
			boot = r.Boot
		case !ok && !end && n > 1 && torn(line): // 1
			return p
		case !ok: // 2
			p.say(n, "it is damaged")
		case last == nil && n == 1:
			p.say(n, "the line that names its boot is missing")
		}
		at += len(line)
		if end {
			at++
		}
		if !ok {
			p.good = at
			continue
		}
		if last != nil && r.Seq != last.Seq+1 && (len(p.damage) == 0 || r.Seq <= last.Seq) {
			p.say(n, fmt.Sprintf("records %d to %d are missing before it", last.Seq+1, r.Seq-1))
		}
		p.records, p.good, last = append(p.records, r), at, &r
		p.unended = !end
	}
	return p
}

func (p *parsed) say(line int, what string) {
	p.damage = append(p.damage, fmt.Sprintf("line %d: %s (%v): a setting that it recorded may stay behind", line, what, kernel.ErrMalformed))
}

// cut returns the first line without its newline, and whether it has one.
func cut(data []byte) (line []byte, end bool) {
	line, _, end = bytes.Cut(data, []byte{'\n'})
	return line, end
}

// torn reports whether a last line may be the beginning of one of ours: it is all text,
// is shorter than it declares, and is not complete JSON.
func torn(line []byte) bool {
	if bytes.ContainsFunc(line, func(r rune) bool { return r < ' ' }) {
		return false
	}
	head := line[:min(prefix, len(line))]
	for i, c := range head {
		if blank := i == 8 || i == 17; blank != (c == ' ') || !blank && !bytes.ContainsRune([]byte("0123456789abcdef"), rune(c)) {
			return false
		}
	}
	if len(line) < prefix {
		return true
	}
	size, ok := sizeOf(line)
	text := line[prefix:]
	return ok && size > len(text) && !json.Valid(text) && (len(text) == 0 || !json.Valid(text[:len(text)-1]))
}
