// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"errors"

	"homenode/internal/kernel"
)

// mostSwept is the number of entries that one call checks: a file each, or a request to
// a manager. The rest follow in later calls, as a map has no order.
const mostSwept = 256

// EndGone ends the records of settings that no longer exist, for workloads that their
// reader no longer sees. No later call would ask for them, and a long run would collect
// them all. A cgroup that is only empty keeps its record, and so does a setting that
// cannot be read.
func (j *Journal) EndGone(owner Owner, seen func(workload string) bool) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	var errs []error
	left, silent := mostSwept, silence{}
	for _, e := range j.ledger {
		if e.At != 0 || seen(e.Workload) || silent.of(e.Setting) != nil { // inherited: see GiveBack
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
