// SPDX-License-Identifier: Apache-2.0

package procfs

import (
	"bytes"
	"errors"
)

// CPUTicks is the activity of one CPU since boot, in ticks of USER_HZ (100 a second).
type CPUTicks struct {
	CPU   int
	Busy  uint64 // user, nice, system, irq, softirq; guest time is in user
	Total uint64 // busy, idle and iowait; stolen time is neither ours nor free
}

// ParseStat reads the per-CPU lines of /proc/stat (since 2.6; fields in ticks):
//
//	cpu  71920 0 2340 93952 12 0 5 0 0 0
//	cpu0 35960 0 1170 46976 6 0 2 0 0 0
//
// in the order user nice system idle iowait irq softirq steal guest guest_nice.
func ParseStat(data []byte) ([]CPUTicks, error) {
	var all []CPUTicks
	for n, line := range lines(data) {
		name, rest := nextField(line)
		id, ok := bytes.CutPrefix(name, []byte("cpu"))
		if !ok || len(id) == 0 {
			continue
		}
		c, err := parseCPULine(id, rest)
		if err != nil {
			return nil, malformed("/proc/stat", n, line, err)
		}
		all = append(all, c)
	}
	return all, nil
}

func parseCPULine(id, rest []byte) (CPUTicks, error) {
	cpu, err := number(id)
	if err != nil {
		return CPUTicks{}, err
	}
	var v [7]uint64
	for i := range v {
		var f []byte
		if f, rest = nextField(rest); len(f) == 0 {
			return CPUTicks{}, errShort
		}
		if v[i], err = number(f); err != nil {
			return CPUTicks{}, err
		}
	}
	busy := v[0] + v[1] + v[2] + v[5] + v[6]
	return CPUTicks{CPU: int(cpu), Busy: busy, Total: busy + v[3] + v[4]}, nil
}

// ParseStatBusy reads the first line of /proc/stat, the sum of all CPUs: ticks that
// were not idle. Stolen ones (since 2.6.11) are included, because another guest kept
// this host busy with them.
func ParseStatBusy(data []byte) (uint64, error) {
	first, _, _ := bytes.Cut(data, []byte{'\n'})
	name, rest := nextField(first)
	if string(name) != "cpu" {
		return 0, malformed("/proc/stat", 1, first, errNoSum)
	}
	c, err := parseCPULine([]byte("0"), rest)
	if err != nil {
		return 0, malformed("/proc/stat", 1, first, err)
	}
	for range 7 {
		_, rest = nextField(rest)
	}
	stolen, _ := nextField(rest)
	if len(stolen) == 0 {
		return c.Busy, nil
	}
	n, err := number(stolen)
	if err != nil {
		return 0, malformed("/proc/stat", 1, first, err)
	}
	return c.Busy + n, nil
}

var errNoSum = errors.New("want the sum of all CPUs")
