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

var errNoPressure = errors.New("no cpu.pressure: its cpu controller is not cgroup v2's")

// pressureSensor reads the share of the time since the round before in which a thread
// of the workload waited for a CPU. cpu.pressure of v2 is one small file; without it,
// one /proc/PID/task/TID/schedstat per thread would be needed.
type pressureSensor struct {
	w      *workload
	file   *unix.Kept
	waited time.Duration
	at     time.Time // of waited; zero: not known
	err    error     // of the last attempt
}

func newPressureSensor(w *workload) sensor {
	return &pressureSensor{w: w, file: w.file(w.cpuHier, "cpu.pressure")}
}

func (s *pressureSensor) read(rd *round, out *window.Workload) error {
	if !s.w.cpuHier.Present() || !s.w.cpuHier.V2 {
		return errNoPressure
	}
	if s.err != nil && s.w.seen%rarely != 0 {
		return s.err
	}
	waited, err := s.readTotal(rd)
	now := rd.now()
	if s.err = err; err != nil { // PSI is not in the kernel, or off (psi=0)
		s.at = time.Time{}
		return err
	}
	delta, elapsed, first := waited-s.waited, now.Sub(s.at), s.at.IsZero()
	s.waited, s.at = waited, now
	if first || elapsed <= 0 || delta < 0 {
		return errFirstWindow
	}
	// The kernel adds a wait up when it ends, or every 2 s: some of it may be older.
	out.Waiting = unit.Measured(unit.Ratio(min(1, delta.Seconds()/elapsed.Seconds())), "cpu.pressure")
	return nil
}

func (s *pressureSensor) unknown(_ *round, out *window.Workload, why string) {
	out.Waiting = unit.UnknownValue[unit.Ratio](why)
}

func (s *pressureSensor) readTotal(rd *round) (time.Duration, error) {
	data, err := s.file.ReadLine(&rd.buf) // two lines, of 120 bytes together
	var total time.Duration
	if err == nil {
		total, err = cgroup.ParseCPUPressure(data)
	}
	return total, unix.Explain("read", s.file.Path, "", err)
}
