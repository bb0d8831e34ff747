// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"errors"
	"time"

	"homenode/internal/kernel/cgroup"
	"homenode/internal/kernel/unix"
	"homenode/internal/unit"
	"homenode/internal/window"
)

var (
	errFirstWindow = errors.New(firstWindow)
	errNoCPUAcct   = errors.New("its processes are in another cgroup of the cpuacct hierarchy")
)

// cpuSensor reads the CPU time used since the round before, in CPUs' worth.
type cpuSensor struct {
	hier  cgroup.Hier
	usage *unix.Kept
	used  time.Duration
	at    time.Time // of used; zero: not known
}

func newCPUSensor(w *workload) sensor {
	return &cpuSensor{hier: w.acctHier, usage: w.file(w.acctHier, pick(w.acctHier, "cpu.stat", "cpuacct.usage"))}
}

func (s *cpuSensor) read(rd *round, out *window.Workload) error {
	if !s.hier.Present() {
		return errNoCPUAcct
	}
	used, err := s.readUsage(rd)
	now := rd.now()
	if err != nil {
		s.at = time.Time{}
		return unix.Explain("read", s.usage.Path, "", err)
	}
	delta, elapsed, first := used-s.used, now.Sub(s.at), s.at.IsZero()
	s.used, s.at = used, now
	if first || elapsed <= 0 || delta < 0 {
		return errFirstWindow
	}
	out.CPU = unit.Measured(delta.Seconds()/elapsed.Seconds(), pick(s.hier, "cpu.stat", "cpuacct.usage"))
	return nil
}

func (s *cpuSensor) unknown(_ *round, out *window.Workload, why string) {
	out.CPU = unit.UnknownValue[float64](why)
}

// readUsage reads the time used so far. On v2, the same file also has the throttling by
// the quota.
func (s *cpuSensor) readUsage(rd *round) (time.Duration, error) {
	data, err := s.usage.ReadLine(&rd.buf)
	if err != nil {
		return 0, err
	}
	if !s.hier.V2 {
		return cgroup.ParseCPUAcctUsage(data)
	}
	if t, err := cgroup.ParseThrottling(data); err == nil {
		rd.throttling = unit.Some(t)
	}
	return cgroup.ParseCPUStat(data)
}
