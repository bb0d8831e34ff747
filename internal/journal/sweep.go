// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"errors"

	"homenode/internal/kernel"
)

// mostSwept are looked at in one call: a file each, or a question to a manager. Those that
// are left over come with the next call, as a map has no order.
const mostSwept = 256

// EndGone ends the records of what is there no more, of workloads that their reader does
// not see any more: nobody will ask for them again, and a long life would gather them all.
// A cgroup that is only empty keeps its record. What cannot be read keeps it, too.
func (j *Journal) EndGone(owner Owner, seen func(workload string) bool) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	var errs []error
	left, silent := mostSwept, silence{}
	for _, e := range j.ledger {
		if e.At != 0 || seen(e.Workload) || silent.of(e.Setting) != nil { // heirs: see GiveBack
			continue
		}
		if left--; left < 0 {
			break
		}
		cur, err := owner.Read(e.Setting)
		silent.hear(e.Setting, err)
		if gone := errors.Is(err, kernel.ErrGone) && !unsure(err); gone || err == nil && cur.ID != e.ID {
			errs = append(errs, j.end(owner, e.Setting, string(Vanished)))
		}
	}
	j.shorten()
	return errors.Join(errs...)
}
