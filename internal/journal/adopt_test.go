// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"fmt"
	"testing"
)

// elephant remembers one setting.
type elephant struct {
	*world
	all []Entry
	err error
}

func (e elephant) Remembered() ([]Entry, error) { return e.all, e.err }

// What an owner remembers of an earlier boot is put back, and stays on record while the
// owner's service does not answer. What is already on record is not taken twice.
func TestRememberedIsPutBack(t *testing.T) {
	w := newWorld()
	s := Named(OfContainer, "docker/1a", "cpuset.cpus")
	w.ids[s.Cgroup], w.files[s] = 7, "2"
	e := elephant{world: w, all: []Entry{{Setting: s, ID: 7, Original: "0-3", Ours: []string{"1", "2"}}}}
	w.writeErr = func(Setting, string) error { return fmt.Errorf("away: %w", ErrNoAnswer) }
	j := mustOpen(t, w)
	for range 2 {
		got, err := j.Restore(ctx, e)
		if err != nil || len(got) != 1 || got[0].Result != Kept || len(j.Outstanding()) != 1 {
			t.Errorf("%v, %v, %v", got, err, j.Outstanding())
		}
		j = mustOpen(t, w) // killed
	}
	w.writeErr = nil
	e.err = fmt.Errorf("half of it cannot be read")
	if got, err := j.Restore(ctx, e); err == nil || len(got) != 1 || got[0].Result != PutBack || w.files[s] != "0-3" || len(j.Outstanding()) != 0 {
		t.Errorf("%v, %v, %v", got, err, w.files)
	}
}
