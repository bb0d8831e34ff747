// SPDX-License-Identifier: Apache-2.0

package sampling

import (
	sys "golang.org/x/sys/unix"

	"homenode/internal/kernel/unix"
)

// Try opens the events that sample loads and stores on a CPU, and closes them at once. It
// returns what the kernel answered, loads first.
func Try(calls unix.Sampling, t Table, cpu int) (loads, stores error) {
	s := &Sampler{calls: calls}
	cfg := Config{Table: t, Loads: true, Stores: true, Period: trialPeriod, LatencyThreshold: leastLatency}
	try := func(e Event) error {
		one, err := s.openOne(cfg, e, cpu, func(attr *sys.PerfEventAttr, id, group int) (int, error) { return calls.OpenTask(attr, -1, id, group) })
		if err == nil {
			s.closeFiles(one)
		}
		return err
	}
	return try(t.Loads), try(t.Stores)
}

const (
	trialPeriod  = 1 << 20 // nothing is sampled: without a ring and, but for a moment, disabled
	leastLatency = 3       // cycles: the least that Intel's PMU takes
)
