// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"errors"
	"fmt"
	"testing"

	"homenode/internal/action"
	"homenode/internal/kernel"
)

// asked is a world whose requests may fail, and which records the ends that it learns
// of.
type asked struct {
	*world
	readErr, endErr error
	reads           int
	ended           []string
}

func (a *asked) Read(s Setting) (Current, error) {
	a.reads++
	if a.readErr != nil {
		return Current{}, fmt.Errorf("read %s: %w", s, a.readErr)
	}
	return a.world.Read(s)
}

func (a *asked) Ended(s Setting) error {
	a.ended = append(a.ended, s.String())
	return a.endErr
}

// bound has one setting of ours on record.
func bound(t *testing.T, names ...string) (*asked, *Journal) {
	t.Helper()
	a := &asked{world: newWorld()}
	j := mustOpen(t, a.world)
	for i, name := range names {
		s := Setting{name, "f"}
		a.ids[name], a.files[s] = uint64(i+1), "0-3"
		if err := j.change(a, "/x", Change{Setting: s, New: "1"}); err != nil {
			t.Fatal(err)
		}
	}
	return a, j
}

// Which errors end a record: that the setting is gone; for a file also that its
// controller is gone. An error that keeps us from asking a manager proves nothing about
// what was requested before.
func TestWhatEndsARecord(t *testing.T) {
	const file, unit, docker, group = "/demo/a", "unit a.service", "container docker/1a", "resctrl g"
	for _, c := range []struct {
		err  error
		ends []string
	}{
		{kernel.ErrGone, []string{file, unit, docker, group}},
		{kernel.ErrNotSupported, []string{file, group}},
		{errors.Join(kernel.ErrGone, ErrNoAnswer), nil},
		{errors.Join(kernel.ErrGone, ErrUnsure), nil},
		{ErrNoAnswer, nil}, {ErrRefused, nil}, {kernel.ErrNotPermitted, nil}, {kernel.ErrMalformed, nil}, {errors.New("what"), nil},
	} {
		for _, name := range []string{file, unit, docker, group} {
			a, j := bound(t, name)
			a.readErr = c.err
			_, err := j.Restore(ctx, a)
			want := 1
			for _, n := range c.ends {
				if n == name {
					want = 0
				}
			}
			if len(j.Outstanding()) != want || len(a.ended) != 1-want {
				t.Errorf("%s, %v: %d outstanding, ended %v (%v)", name, c.err, len(j.Outstanding()), a.ended, err)
			}
		}
	}
}

// An owner learns of every end before the record ends. If that fails the record stays.
func TestOwnersAreTold(t *testing.T) {
	const docker = "container docker/1a"
	s := Setting{docker, "f"}
	for name, do := range map[string]func(a *asked){
		"put back": func(*asked) {}, "already": func(a *asked) { a.files[s] = "0-3" }, "left": func(a *asked) { a.files[s] = "5" },
		"anew": func(a *asked) { a.ids[docker] = 99 }, "gone": func(a *asked) { delete(a.ids, docker) },
	} {
		a, j := bound(t, docker)
		do(a)
		a.endErr = errors.New("the disk is full")
		if _, err := j.Restore(ctx, a); err == nil || len(j.Outstanding()) != 1 {
			t.Errorf("%s: %v, %v", name, err, j.Outstanding())
		}
		a.endErr = nil
		if _, err := j.Restore(ctx, a); err != nil || len(a.ended) != 2 || len(j.Outstanding()) != 0 {
			t.Errorf("%s: %v, %v, %v", name, err, a.ended, j.Outstanding())
		}
	}
	a, j := bound(t)
	a.ids[docker], a.files[s] = 1, "0-3"
	a.writeErr = func(Setting, string) error { return ErrRefused }
	if err := j.change(a, "/x", Change{Setting: s, New: "1"}); err == nil || len(a.ended) != 1 || len(j.Outstanding()) != 0 {
		t.Errorf("refused: %v, %v, %v", err, a.ended, j.Outstanding())
	}
}

// A restore waits once for a manager that does not answer, and still asks the others.
func TestSilentManagerIsAskedOnce(t *testing.T) {
	a, j := bound(t, "container docker/1a", "container docker/2b", "container docker/3c", "unit a.service", "unit b.service", "/demo/a")
	a.readErr, a.reads = ErrNoAnswer, 0
	got, err := j.Restore(ctx, a)
	if err != nil || a.reads != 3 || len(got) != 6 || len(j.Outstanding()) != 6 {
		t.Errorf("%d reads: %v, %v", a.reads, got, err)
	}
	for _, r := range got {
		if r.Result != Kept {
			t.Error(r)
		}
	}
}

// A journal that changes all the time stays short, and keeps its meaning.
func TestLongLifeStaysShort(t *testing.T) {
	w := newWorld()
	j := mustOpen(t, w)
	a := j.Wrap(w)
	for i := range 8000 {
		if out := a.Apply(ctx, cpus("/demo/a", i%2)); out.Status != action.Done {
			t.Fatalf("%+v", out)
		}
		if len(w.log) > mostLog+4096 {
			t.Fatalf("%d bytes after %d changes", len(w.log), i)
		}
	}
	if before := fmt.Sprint(ours(j)); fmt.Sprint(ours(mustOpen(t, w))) != before || len(j.Outstanding()) != 3 {
		t.Errorf("%v", before)
	}
}
