// SPDX-License-Identifier: Apache-2.0

package perf

import (
	"fmt"
	"strconv"
	"strings"

	"homenode/internal/kernel/unix"
)

// bits are the place of an event's field in perf_event_attr.config, lowest first.
type bits []struct{ low, high uint }

// parseFormat reads /sys/bus/event_source/devices/PMU/format/FIELD (since 3.7).
// A field of config1 or config2 is refused: no event of a memory controller needs one.
//
//	config:0-7
//	config:0-7,32-35
func parseFormat(text string) (bits, error) {
	text = strings.TrimSpace(text)
	ranges, ok := strings.CutPrefix(text, "config:")
	if !ok {
		return nil, fmt.Errorf("parse PMU format: line 1 %.40q: not config:BITS (%w)", text, unix.ErrMalformed)
	}
	var all bits
	for _, r := range strings.Split(ranges, ",") {
		from, to, many := strings.Cut(r, "-")
		if !many {
			to = from
		}
		low, err1 := strconv.ParseUint(from, 10, 8)
		high, err2 := strconv.ParseUint(to, 10, 8)
		if err1 != nil || err2 != nil || low > high || high > 63 {
			return nil, fmt.Errorf("parse PMU format: line 1 %.40q: not a range of bits 0-63 (%w)", text, unix.ErrMalformed)
		}
		all = append(all, struct{ low, high uint }{uint(low), uint(high)})
	}
	return all, nil
}

// parseEvent reads /sys/bus/event_source/devices/PMU/events/EVENT (since 3.4)
// into a config; format gives the bits of a field.
//
//	event=0x04,umask=0x03
func parseEvent(text string, format func(field string) (bits, error)) (uint64, error) {
	var config uint64
	text = strings.TrimSpace(text)
	for _, term := range strings.Split(text, ",") {
		field, number, has := strings.Cut(term, "=")
		if !has {
			number = "1"
		}
		v, err := strconv.ParseUint(number, 0, 64)
		if err != nil {
			return 0, fmt.Errorf("parse PMU event: line 1 %.40q: %q is no number (%w)", text, number, unix.ErrMalformed)
		}
		where, err := format(field)
		if err != nil {
			return 0, err
		}
		for _, b := range where {
			width := b.high - b.low + 1
			config |= v & (1<<width - 1) << b.low
			v >>= width
		}
		if v != 0 {
			return 0, fmt.Errorf("parse PMU event: line 1 %.40q: %s is too large for its field (%w)", text, number, unix.ErrMalformed)
		}
	}
	return config, nil
}
