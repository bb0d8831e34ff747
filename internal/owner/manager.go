// SPDX-License-Identifier: Apache-2.0

package owner

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"homenode/internal/action"
	"homenode/internal/journal"
	"homenode/internal/kernel/cgroup"
	"homenode/internal/kernel/unix"
	"homenode/internal/set"
	"homenode/internal/unit"
)

// Cgroups is owner/cgroup: what the kernel has of a container.
type Cgroups interface {
	// Fits returns the file of a cgroup that a step sets, and its value.
	Fits(step action.Step) (journal.Change, error)
	Read(s journal.Setting) (journal.Current, error)
	Same(s journal.Setting, current, recorded string) bool
	Equivalent(s journal.Setting, original string) (string, error)
	MovePages(ctx context.Context, p journal.Permit, step action.Step) action.Outcome
}

// Fits refuses what the kernel would accept and then not honour: on v2 the parent's set
// silently replaces a set outside it. The error calls the parent "parent", or "slice".
func Fits[K set.Kind](s journal.Setting, want, parent set.Set[K], called string) error {
	if want.IsEmpty() {
		return fmt.Errorf("set %s: %w: an empty set binds nothing", s, journal.ErrRefused)
	}
	if missing := want.Minus(parent); !missing.IsEmpty() {
		return fmt.Errorf("set %s to %s: %w: its %s has %s only, not %s", s, want, journal.ErrRefused, called, parent, missing)
	}
	return nil
}

// MostElsewhere is how much of a workload's memory may be on other nodes when its own are
// set. The process that writes them waits until it has moved, about 43 ms (MAO's 0.65
// s/GB).
const MostElsewhere = 64 * unit.MiB

// RefuseSlowMove refuses nodes while too much of what processes map is on others,
// because who ("PID 1" or "Docker and runc") would wait for long. Without the memory
// controller there is no such file, and actuate has looked at the processes' pages. If
// the file exists and cannot be read, the amount may be large.
func RefuseSlowMove(layout cgroup.Layout, step action.Step, most unit.Bytes, who string) error {
	var buf unix.Buffer
	elsewhere, err := layout.MappedElsewhere(step.Workload, step.Nodes, &buf)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("set nodes of %s to %s: how much of its memory is elsewhere is not known: %w", step.Workload, step.Nodes, err)
	case elsewhere <= most:
		return nil
	}
	return fmt.Errorf("set nodes of %s to %s: %w: %v of its memory are elsewhere, and %s would wait until they had moved (at most %v): its CPUs stay set",
		step.Workload, step.Nodes, journal.ErrRefused, elsewhere, who, most)
}

// AnswerLimit of one request. An update of a container waits for runc, which takes some
// 50 ms. PID 1 answers in some 100 µs, but not while it waits for a write to a cgroup.
const AnswerLimit = 5 * time.Second

// quiet is how long a manager that has not answered in time is left alone: each request
// waits for its limit, and a round has one for each workload.
const quiet = 10 * time.Second

// A manager that answers late each time is left alone, too: 50 containers with an answer
// just within AnswerLimit would hold a round for ten minutes, until systemd's watchdog ends
// the agent. An answer is late from lateAnswer on, which Docker takes on a host with much
// work; lateInAll of them within lateWithin are too many. Lower gives up on slow hosts;
// higher holds rounds.
const (
	lateAnswer = time.Second
	lateInAll  = 30 * time.Second
	lateWithin = time.Minute
)

// Backoff records a manager that has not answered in time, or has often been late; the zero
// Backoff records none.
type Backoff struct {
	until time.Time
	slow  bool          // it answered, but late
	late  time.Duration // of late answers since
	since time.Time
}

// Begin is called when an answer did not come in time.
func (s *Backoff) Begin() { s.until, s.slow = time.Now().Add(quiet), false }

// Lasts reports that the manager is not to be asked yet.
func (s *Backoff) Lasts() bool { return time.Now().Before(s.until) }

// took counts the time of an answer, or of waiting for one.
func (s *Backoff) took(d time.Duration) {
	if d < lateAnswer {
		return
	}
	if now := time.Now(); now.Sub(s.since) > lateWithin {
		s.late, s.since = 0, now
	}
	if s.late += d; s.late >= lateInAll && !s.Lasts() {
		s.Begin()
		s.slow, s.late = true, 0
	}
}

// why says why the manager is not asked.
func (s *Backoff) why(limit time.Duration) string {
	if s.slow {
		return fmt.Sprintf("soon enough: its last answers took %s together", lateInAll)
	}
	return fmt.Sprintf("within %s just now", limit)
}
