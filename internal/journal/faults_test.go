// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	sys "golang.org/x/sys/unix"

	"homenode/internal/action"
)

// fullDisk is a world whose disk has no room from one call of a kind to another.
type fullDisk struct {
	*world
	calls, from, to int // of Append and Sync together; to 0: for ever
	stuck           bool
}

func (d *fullDisk) full() bool {
	d.calls++
	return d.from > 0 && d.calls >= d.from && (d.to == 0 || d.calls < d.to)
}

// Append leaves half of the line, as a write without room does.
func (d *fullDisk) Append(line []byte) error {
	if d.full() {
		d.log = append(d.log, line[:len(line)/2]...)
		return sys.ENOSPC
	}
	return d.world.Append(line)
}

func (d *fullDisk) Sync() error {
	if d.full() {
		return sys.ENOSPC
	}
	return d.world.Sync()
}

func (d *fullDisk) Truncate(size int64) error {
	if d.stuck && d.full() {
		return sys.EIO
	}
	return d.world.Truncate(size)
}

func (d *fullDisk) Replace(content []byte) error {
	if d.full() {
		return sys.ENOSPC
	}
	return d.world.Replace(content)
}

// Without room for the intent, nothing is written to a cgroup. The outcome says why, and
// the file has no half line. With room again the work continues, and is put back.
func TestDiskFull(t *testing.T) {
	steps := []action.Step{cpus("/demo/a", 0, 1), mems("/demo/a", 0), cpus("/demo/b", 2)}
	for from := 1; from <= 30; from++ {
		for _, length := range []int{1, 2, 5} {
			d := &fullDisk{world: newWorld()}
			j, err := open(d, boot)
			if err != nil {
				t.Fatal(err)
			}
			d.calls, d.from, d.to = 0, from, from+length
			failed := 0
			for range 2 { // the second time with some room
				for _, s := range steps {
					o := j.Wrap(d).Apply(ctx, s)
					if o.Status != action.Done {
						failed++
						if o.Status != action.Failed || !strings.Contains(o.Detail, "write journal: no space left on device") {
							t.Errorf("full from %d: %s: %s", from, o.Status, o.Detail)
						}
					}
					onRecord(t, d.world, fmt.Sprintf("full from %d for %d", from, length))
				}
			}
			if failed == 0 && from <= 6 {
				t.Errorf("full from %d: nothing failed", from)
			}
			d.from = 0
			for _, s := range steps {
				if o := j.Wrap(d).Apply(ctx, s); o.Status != action.Done {
					t.Errorf("full from %d, then not: %s: %s", from, o.Status, o.Detail)
				}
			}
			if _, err := j.Restore(ctx, d); err != nil || len(j.Outstanding()) > 0 || d.files[subtreeRoot] != "-" {
				t.Errorf("full from %d, then not: %v, %v", from, err, d.files)
			}
		}
	}
}

// onRecord: a journal that is read again, as after a kill now, lists everything that
// was changed.
func onRecord(t *testing.T, w *world, about string) {
	t.Helper()
	j, err := open(w.clone(), boot)
	if err != nil || len(j.damaged) > 0 {
		t.Fatalf("%s: %v, %v", about, err, j.damaged)
	}
	for s, now := range w.files {
		if changed := now != "" && now != "-"; changed && !j.Ours(s.Cgroup, s.File, now) {
			t.Errorf("%s: %s is %q, and the journal does not know", about, s, now)
		}
	}
}

// A disk is full while settings are put back. The original values are still put back,
// the error says that this could not be recorded, and the next restore finds it done.
// Only a setting that needs an equivalent waits for room.
func TestRestoreOnFullDisk(t *testing.T) {
	for _, populated := range []bool{false, true} {
		d := &fullDisk{world: newWorld()}
		d.set(subtreeRoot, "+")
		d.set(subtreeDemo, "+") // not ours: it stays on
		j, err := open(d, boot)
		if err != nil {
			t.Fatal(err)
		}
		if o := j.Wrap(d).Apply(ctx, cpus("/demo/a", 0, 1)); o.Status != action.Done {
			t.Fatal(o.Detail)
		}
		ours := d.files[cpusA]
		d.populated = populated
		d.calls, d.from = 0, 1
		_, err = j.Restore(ctx, d)
		if err == nil || !strings.Contains(err.Error(), "write journal: no space left on device") || len(j.Outstanding()) == 0 {
			t.Errorf("populated %v: %v, outstanding %v", populated, err, j.Outstanding())
		}
		if waits := d.files[cpusA] == ours; waits != populated {
			t.Errorf("populated %v: %v", populated, d.files)
		}
		d.from = 0
		if _, err := j.Restore(ctx, d); err != nil || d.files[cpusA] == ours || len(j.Outstanding()) > 0 {
			t.Errorf("populated %v, with room: %v, %v", populated, err, j.Outstanding())
		}
	}
}

// A half line cannot be cut off: nothing is changed any more, and the error says so.
func TestBrokenJournal(t *testing.T) {
	d := &fullDisk{world: newWorld(), stuck: true}
	j, err := open(d, boot)
	if err != nil {
		t.Fatal(err)
	}
	d.calls, d.from, d.to = 0, 1, 3
	for i := range 3 {
		o := j.Wrap(d).Apply(ctx, cpus("/demo/a", 0, 1))
		if o.Status != action.Failed || i > 0 && !strings.Contains(o.Detail, "nothing is changed any more, restart homenode") || d.files[subtreeRoot] != "-" {
			t.Errorf("%s: %s; %v", o.Status, o.Detail, d.files)
		}
	}
	if j, err = open(d, boot); err != nil || len(j.damaged) > 0 { // the restart
		t.Fatal(err, j.damaged)
	}
	if o := j.Wrap(d).Apply(ctx, cpus("/demo/a", 0, 1)); o.Status != action.Done {
		t.Errorf("after the restart: %s: %s", o.Status, o.Detail)
	}
}

// Of agents that start at the very same time one gets the journal. The others report its
// holder, or at least that it is held.
func TestTwoAtOnce(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	if j, err := Open(dir); err != nil {
		t.Skipf("no journal on this host: %v", err)
	} else if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	const n = 8
	for range 20 {
		var wait sync.WaitGroup
		var got [n]*Journal
		var errs [n]error
		begin := make(chan struct{})
		for i := range n {
			wait.Go(func() { <-begin; got[i], errs[i] = Open(dir) })
		}
		close(begin)
		wait.Wait()
		have := 0
		for i := range n {
			if got[i] != nil {
				have++
				continue
			}
			if text := fmt.Sprint(errs[i]); !errors.Is(errs[i], ErrLocked) || !strings.Contains(text, "held by another homenode") || strings.Contains(text, "pid :") {
				t.Errorf("another one: %v", errs[i])
			}
		}
		if have != 1 {
			t.Errorf("%d of %d have the journal", have, n)
		}
		for _, j := range got {
			if j != nil {
				j.Close()
			}
		}
	}
}
