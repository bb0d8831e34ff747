// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"bytes"
	"time"
)

// Throttling is how a cgroup's quota limited it.
type Throttling struct {
	Periods   int64 // of the quota, in which tasks wanted CPU time
	Throttled int64 // of those, in which the quota was used up
}

// ParseThrottling reads cpu.stat, of v2 (since 4.15) with the cpu controller, and of
// v1 (since 3.2). Without the lines it is zero.
//
//	nr_periods 120
//	nr_throttled 7
func ParseThrottling(data []byte) (t Throttling, err error) {
	for _, f := range []struct {
		key  string
		into *int64
	}{{"nr_periods ", &t.Periods}, {"nr_throttled ", &t.Throttled}} {
		text, ok := lineOf(data, f.key)
		if !ok {
			continue
		}
		if *f.into, err = number(text); err != nil {
			return Throttling{}, malformed("cpu.stat", text, err)
		}
	}
	return t, nil
}

// lineOf is the text after a key that begins a line, up to the line's end.
func lineOf(data []byte, key string) ([]byte, bool) {
	for at := 0; ; {
		i := bytes.Index(data[at:], []byte(key))
		if i < 0 {
			return nil, false
		}
		i += at
		if at = i + len(key); i == 0 || data[i-1] == '\n' {
			text, _, _ := bytes.Cut(data[at:], []byte("\n"))
			return text, true
		}
	}
}

// ParseCPUPressure reads how long at least one task of a cgroup or below it was
// runnable and had no CPU, for any reason: other tasks, or the cgroup's own quota. From
// cpu.pressure of v2 (since 4.20, with PSI); total is in microseconds, wall time, not
// tasks' time.
//
//	some avg10=0.00 avg60=0.00 avg300=0.00 total=51234
//	full avg10=0.00 avg60=0.00 avg300=0.00 total=50333
func ParseCPUPressure(data []byte) (time.Duration, error) {
	line, ok := lineOf(data, "some ")
	i := bytes.LastIndex(line, []byte(" total="))
	if !ok || i < 0 {
		return 0, malformed("cpu.pressure", data, errNoLine)
	}
	usec, err := number(line[i+len(" total="):])
	if err != nil || usec > 1<<53 {
		return 0, malformed("cpu.pressure", line, errNumber)
	}
	return time.Duration(usec) * time.Microsecond, nil
}
