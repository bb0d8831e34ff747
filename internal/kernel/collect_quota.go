// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"bytes"
	"errors"

	"homenode/internal/kernel/cgroup"
	"homenode/internal/kernel/unix"
	"homenode/internal/unit"
	"homenode/internal/window"
)

const noLimit = "no limit is set"

var (
	errNoLimit         = errors.New(noLimit)
	errNoCPUController = errors.New("no cpu controller for it")
	errNoPeriod        = errors.New("no period of its quota ended")
	errCPUControlOff   = errors.New("no limit is set: the cpu controller is off in it")
)

// quotaSensor reads the workload's own limit of CPU time; that of an ancestor is not read.
type quotaSensor struct {
	hier          cgroup.Hier
	quota, period *unix.Kept
}

func newQuotaSensor(w *workload) sensor {
	return &quotaSensor{
		hier:   w.cpuHier,
		quota:  w.file(w.cpuHier, pick(w.cpuHier, "cpu.max", "cpu.cfs_quota_us")),
		period: w.file(w.cpuHier, "cpu.cfs_period_us"),
	}
}

func (s *quotaSensor) read(rd *round, out *window.Workload) error {
	if !s.hier.Present() {
		return errNoCPUController
	}
	quota, err := s.readQuota(rd)
	if errors.Is(err, ErrGone) {
		return errCPUControlOff
	}
	if err != nil {
		return err
	}
	v, ok := quota.Get()
	if !ok {
		return errNoLimit
	}
	out.Quota = unit.Measured(v, pick(s.hier, "cpu.max", "cpu.cfs_quota_us"))
	return nil
}

func (s *quotaSensor) unknown(_ *round, out *window.Workload, why string) {
	out.Quota = unit.UnknownValue[float64](why)
}

func (s *quotaSensor) readQuota(rd *round) (unit.Opt[float64], error) {
	data, err := s.quota.ReadLine(&rd.buf)
	if err != nil {
		return unit.None[float64](), unix.Explain("read", s.quota.Path, "", err)
	}
	if s.hier.V2 {
		return cgroup.ParseCPUMax(data)
	}
	if q := bytes.TrimSpace(data); len(q) > 0 && q[0] == '-' {
		return unit.None[float64](), nil // without a quota the period does not matter
	}
	quota := append([]byte(nil), data...) // the buffer is read into again
	period, err := s.period.ReadLine(&rd.buf)
	if err != nil {
		return unit.None[float64](), unix.Explain("read", s.period.Path, "", err)
	}
	return cgroup.ParseCFSQuota(quota, period)
}

// throttledSensor reads the share of its quota's periods in which the quota was used
// up.
type throttledSensor struct {
	hier   cgroup.Hier
	stat   *unix.Kept
	before unit.Opt[cgroup.Throttling]
}

func newThrottledSensor(w *workload) sensor {
	return &throttledSensor{hier: w.cpuHier, stat: w.file(w.cpuHier, "cpu.stat")}
}

// read needs no file if the CPU time comes from cpu.stat, too. Without a quota there is
// nothing to throttle.
func (s *throttledSensor) read(rd *round, out *window.Workload) error {
	if !out.Quota.Known() {
		s.before = rd.throttling
		s.unknown(rd, out, out.Quota.From)
		return nil
	}
	now, ok := rd.throttling.Get()
	if !ok {
		var err error
		if now, err = s.readStat(rd); err != nil {
			s.before = unit.None[cgroup.Throttling]()
			return err
		}
	}
	before, seen := s.before.Get()
	s.before = unit.Some(now)
	if !seen {
		return errFirstWindow
	}
	share, ok := unit.RatioOf(float64(now.Throttled-before.Throttled), float64(now.Periods-before.Periods)).Get()
	if !ok {
		return errNoPeriod
	}
	out.Throttled = unit.Measured(share, "cpu.stat")
	return nil
}

func (s *throttledSensor) unknown(_ *round, out *window.Workload, why string) {
	out.Throttled = unit.UnknownValue[unit.Ratio](why)
}

func (s *throttledSensor) readStat(rd *round) (cgroup.Throttling, error) {
	data, err := s.stat.ReadLine(&rd.buf)
	if err != nil {
		return cgroup.Throttling{}, unix.Explain("read", s.stat.Path, "", err)
	}
	return cgroup.ParseThrottling(data)
}
