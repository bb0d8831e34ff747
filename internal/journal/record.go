// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"bytes"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"strconv"

	"homenode/internal/kernel"
)

// version 2 has threads' affinity and version 3 settings of units, containers and resctrl
// groups, which an older homenode would take for cgroups that are gone.
const version = 3

// kind says what a record records.
type kind string

const (
	kindBoot       kind = "boot"       // first record: which boot this is about
	kindIntent     kind = "intent"     // New is about to be written
	kindDone       kind = "done"       // New was written
	kindFailed     kind = "failed"     // New was not written
	kindEquivalent kind = "equivalent" // New was written, since Old could not be put back
	kindEnd        kind = "end"        // the setting is no concern of ours any more
)

// record is one line:
//
//	0000007d 1c291ca3 {"seq":3,"kind":"intent","cgroup":"/demo/a",…}
//
// the length of the JSON and its CRC-32 (IEEE), in hexadecimal, before it.
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

func (r record) line() ([]byte, error) {
	text, err := json.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("write journal: %w", err)
	}
	return fmt.Appendf(nil, "%08x %08x %s\n", len(text), crc32.ChecksumIEEE(text), text), nil
}

func parseLine(line []byte) (record, bool) {
	if len(line) < prefix || line[8] != ' ' || line[17] != ' ' {
		return record{}, false
	}
	size, err1 := strconv.ParseUint(string(line[:8]), 16, 32)
	sum, err2 := strconv.ParseUint(string(line[9:17]), 16, 32)
	text := line[prefix:]
	if err1 != nil || err2 != nil || size != uint64(len(text)) || uint32(sum) != crc32.ChecksumIEEE(text) {
		return record{}, false
	}
	var r record
	if json.Unmarshal(text, &r) != nil {
		return record{}, false
	}
	return r, true
}

// parse reads a journal. good is where its last whole record ends: what follows
// is a torn write. A damaged line before that is skipped and reported: the
// records around it still say what must be put back.
func parse(data []byte) (all []record, good int, problems []string) {
	var bad []int
	for n, at := 1, 0; at < len(data); n++ {
		end := bytes.IndexByte(data[at:], '\n')
		if end < 0 {
			break
		}
		r, ok := parseLine(data[at : at+end])
		at += end + 1
		if !ok {
			bad = append(bad, n)
			continue
		}
		for _, line := range bad {
			problems = append(problems, fmt.Sprintf("read journal: line %d is damaged (%v): a setting it recorded may stay behind", line, kernel.ErrMalformed))
		}
		all, good, bad = append(all, r), at, nil
	}
	return all, good, problems
}
