// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"bytes"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"time"

	"homenode/internal/kernel/unix"
	"homenode/internal/set"
	"homenode/internal/unit"
)

var (
	errNoLine = errors.New("the line is missing")
	errNumber = errors.New("not a number in range")
)

func malformed(file string, text []byte, cause error) error {
	if len(text) > 60 {
		text = text[:60]
	}
	return fmt.Errorf("parse %s: %q: %w (%w)", file, text, cause, unix.ErrMalformed)
}

func number(b []byte) (int64, error) {
	n, err := strconv.ParseInt(string(b), 10, 64)
	if err != nil || n < 0 {
		return 0, errNumber
	}
	return n, nil
}

// keyed yields the fields of "key value…" lines.
func keyed(data []byte) iter.Seq2[string, []byte] {
	return func(yield func(string, []byte) bool) {
		for line := range bytes.Lines(data) {
			key, val, _ := bytes.Cut(bytes.TrimSpace(line), []byte(" "))
			if len(key) > 0 && !yield(string(key), val) {
				return
			}
		}
	}
}

// value returns the value of a key that must be there.
func value(file, key string, data []byte) (int64, error) {
	for k, v := range keyed(data) {
		if k == key {
			n, err := number(v)
			if err != nil {
				return 0, malformed(file, v, err)
			}
			return n, nil
		}
	}
	return 0, malformed(file, []byte(key), errNoLine)
}

// ParseCPUStat reads the CPU time of a v2 cgroup and those below it from
// cpu.stat (usage_usec, since 4.15), in microseconds:
//
//	usage_usec 1500000
//	user_usec 1000000
func ParseCPUStat(data []byte) (time.Duration, error) {
	usec, err := value("cpu.stat", "usage_usec", data)
	if err != nil || usec > 1<<53 {
		return 0, errors.Join(err, rangeError("cpu.stat", usec, 1<<53))
	}
	return time.Duration(usec) * time.Microsecond, nil
}

func rangeError(file string, n, limit int64) error {
	if n <= limit {
		return nil
	}
	return malformed(file, strconv.AppendInt(nil, n, 10), errNumber)
}

// ParseCPUAcctUsage reads cpuacct.usage of v1 (since 2.6.24), in nanoseconds.
func ParseCPUAcctUsage(data []byte) (time.Duration, error) {
	ns, err := number(bytes.TrimSpace(data))
	if err != nil {
		return 0, malformed("cpuacct.usage", data, err)
	}
	return time.Duration(ns), nil
}

// ParseCPUAcctPerCPU reads cpuacct.usage_percpu of v1 (since 2.6.26): one figure
// per possible CPU in nanoseconds, by ascending id.
//
//	71920912529 93952251650
func ParseCPUAcctPerCPU(data []byte) ([]time.Duration, error) {
	var all []time.Duration
	for f := range bytes.FieldsSeq(data) {
		ns, err := number(f)
		if err != nil || len(all) > set.MaxCPU {
			return nil, malformed("cpuacct.usage_percpu", f, errNumber)
		}
		all = append(all, time.Duration(ns))
	}
	return all, nil
}

// ParseCPUMax reads cpu.max of v2 (since 4.15): quota and period in
// microseconds. None is no limit.
//
//	200000 100000
//	max 100000
func ParseCPUMax(data []byte) (unit.Opt[float64], error) {
	f := bytes.Fields(data)
	if len(f) != 2 {
		return unit.None[float64](), malformed("cpu.max", data, errNumber)
	}
	if string(f[0]) == "max" {
		return unit.None[float64](), nil
	}
	quota, err1 := number(f[0])
	period, err2 := number(f[1])
	if err1 != nil || err2 != nil || period == 0 {
		return unit.None[float64](), malformed("cpu.max", data, errNumber)
	}
	return unit.Some(float64(quota) / float64(period)), nil
}

// ParseCFSQuota reads cpu.cfs_quota_us and cpu.cfs_period_us of v1 (since 3.2):
// microseconds; −1 is no limit.
func ParseCFSQuota(quota, period []byte) (unit.Opt[float64], error) {
	quota = bytes.TrimSpace(quota)
	if string(quota) == "-1" {
		return unit.None[float64](), nil
	}
	q, err1 := number(quota)
	p, err2 := number(bytes.TrimSpace(period))
	if err1 != nil || err2 != nil || p == 0 {
		return unit.None[float64](), malformed("cpu.cfs_quota_us", quota, errNumber)
	}
	return unit.Some(float64(q) / float64(p)), nil
}

// ParsePopulated reads cgroup.events of v2 (since 4.5): "populated 1" means that there
// is a process in it or below.
func ParsePopulated(data []byte) (bool, error) {
	n, err := value("cgroup.events", "populated", data)
	return n > 0, err
}

// ParseFrozen reads cgroup.events of v2 (since 5.2): "frozen 1" means that every
// process in it and below stands still, whichever process asked for that.
func ParseFrozen(data []byte) (bool, error) {
	n, err := value("cgroup.events", "frozen", data)
	return n > 0, err
}
