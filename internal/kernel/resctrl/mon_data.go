// SPDX-License-Identifier: Apache-2.0

package resctrl

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"homenode/internal/kernel/unix"
)

// Files of a domain below mon_data.
const (
	fileLLC   = "llc_occupancy"
	fileTotal = "mbm_total_bytes"
	fileLocal = "mbm_local_bytes"
)

// Words stand in a counter's file in place of a figure (rdtgroup_mondata_show in
// fs/resctrl/ctrlmondata.c):
//
//	Unavailable  the hardware has no figure now: on AMD, it gave the counter to another RMID
//	Error        reading failed
//	Unassigned   no counter is assigned to this event (ABMC, since 6.18)
var words = []string{"Unavailable", "Error", "Unassigned"}

// Count is a counter's file: a figure, or the word that stands for none.
type Count struct {
	Bytes uint64
	Word  string // "": Bytes is the figure
}

// ParseCount reads mon_data/mon_L3_XX/{llc_occupancy,mbm_total_bytes,mbm_local_bytes}
// (since 4.14), in bytes:
//
//	39206912
//	Unavailable
func ParseCount(data []byte) (Count, error) {
	text := strings.TrimSpace(string(data))
	for _, w := range words {
		if text == w {
			return Count{Word: w}, nil
		}
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return Count{}, malformed("mon_data", text, errCount)
	}
	return Count{Bytes: n}, nil
}

var (
	errCount  = errors.New("want bytes, or Unavailable, Error, Unassigned")
	errDomain = errors.New("want mon_L3_XX")
)

func malformed(file, text string, cause error) error {
	return fmt.Errorf("parse resctrl %s: %q: %w (%w)", file, clip(text), cause, unix.ErrMalformed)
}

// ParseMonDomain is the domain of a directory below mon_data, "mon_L3_00": the id of an
// L3 cache, in decimal.
func ParseMonDomain(name string) (int, error) {
	text, ok := strings.CutPrefix(name, "mon_L3_")
	id, err := strconv.ParseUint(text, 10, 31)
	if !ok || err != nil {
		return 0, malformed("mon_data", name, errDomain)
	}
	return int(id), nil
}
