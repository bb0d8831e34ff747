// SPDX-License-Identifier: Apache-2.0

package threadagent

import (
	"context"
	"fmt"
	"time"

	"homenode/internal/journal"
)

// endLimit is how long the current window may take once the run is told to end. A read
// hangs if a process's memory map is locked, or if a file of the kernel does not answer.
// A higher limit waits longer for what never ends. A lower one gives up on slow reads,
// which is safe.
const endLimit = 10 * time.Second

// watched runs, and does not wait for what hangs:
//
//  1. Once it is told to end, the loop has endLimit to finish, and then putBackLimit to
//     restore everything.
//  2. If the loop is stuck, the journal is taken from it, and everything is restored
//     without it. Its sums are not read, because it may still write them.
func (r *run) watched(ctx context.Context) (Summary, error) {
	over := make(chan error, 1)
	go func() { over <- r.whole(ctx) }()
	select {
	case err := <-over:
		return r.finish(), err
	case <-ctx.Done():
	}
	patience := time.NewTimer(endLimit)
	defer patience.Stop()
	select { // 1
	case err := <-over:
		return r.finish(), err
	case <-r.back:
		patience.Reset(putBackLimit + endLimit)
	case <-patience.C:
		return r.without(over)
	}
	select {
	case err := <-over:
		return r.finish(), err
	case <-patience.C:
		return r.without(over)
	}
}

// without is step 2.
func (r *run) without(over <-chan error) (Summary, error) {
	ctx, cancel := context.WithTimeout(context.Background(), putBackLimit)
	defer cancel()
	restored, hung, err := r.o.Actor.PutBackWithout(ctx, func() bool { return len(over) > 0 })
	if !hung {
		err = <-over
		return r.finish(), err
	}
	s := Summary{
		Schema: schema, Period: r.o.Period, Hold: r.o.Hold, DryRun: r.o.Actor.DryRun(), Events: r.o.Reader.EventTable(), Hung: true,
		Processes: []Process{}, Problems: []string{fmt.Sprintf("the last window has hung for more than %v: the settings are restored without it", endLimit)},
	}
	for _, x := range restored {
		if x.Result == journal.PutBack {
			s.PutBack++
		} else if x.Result != journal.Already && x.Result != journal.Vanished {
			s.Problems = append(s.Problems, x.String())
		}
	}
	for _, p := range s.Problems {
		r.o.Say(p)
	}
	return s, err
}
