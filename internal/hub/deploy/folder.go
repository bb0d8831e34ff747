// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"homenode/internal/kernel/unix"
	"homenode/internal/render"
	"homenode/internal/rollout"
)

// Folder has a file for each service. It is safe for concurrent use, by several programs, too.
type Folder struct {
	dir string

	reading sync.Mutex        // held while files are read
	mu      sync.Mutex        // of what follows; never held while files are read
	known   map[string]*entry // by file name
	problem error
	looked  time.Time // when files were last looked at
}

// entry is what is known of a file. err is what is wrong with its content; a file that cannot be read
// for now keeps what was known.
type entry struct {
	size int64
	time time.Time
	r    Rollout
	err  error
	all  bool
	on   map[string]bool
}

// Bounds of the folder.
const (
	mostRollouts = 1000
	mostFile     = 256 << 20
	lockWait     = 30 * time.Second
	lockPoll     = 20 * time.Millisecond
	// fresh is how old an order of another program may be: each request of each host asks for them.
	fresh = time.Second
)

// ErrNone is wrapped where a service has no rollout.
var ErrNone = errors.New("no rollout")

// OpenFolder opens the folder, and makes it if make is set.
func OpenFolder(dir string, make bool) (*Folder, error) {
	f := &Folder{dir: dir, known: map[string]*entry{}}
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) && make {
		if err := makeFolder(dir); err != nil {
			return nil, fmt.Errorf("make the folder of rollouts: %w", err)
		}
	}
	if _, err := os.ReadDir(dir); err != nil && (make || !errors.Is(err, fs.ErrNotExist)) {
		return nil, fmt.Errorf("read rollouts: %w: run it as root or as the hub's user", err)
	}
	return f, nil
}

// makeFolder gives the folder to the owner of the one that it is in.
func makeFolder(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(unix.GiveToOwner(d, filepath.Dir(dir)), d.Close())
}

// fileOf names a service's file.
func fileOf(service string) string { return unix.FileName(service) + ".json" }

// All are the rollouts by service. A file that cannot be read is an error beside them.
func (f *Folder) All() ([]Rollout, error) {
	f.refresh()
	f.mu.Lock()
	defer f.mu.Unlock()
	var all []Rollout
	for _, e := range f.known {
		if e.err == nil {
			all = append(all, e.r)
		}
	}
	slices.SortFunc(all, func(a, b Rollout) int { return strings.Compare(a.Service(), b.Service()) })
	return all, f.problem
}

// Get is one service's rollout.
func (f *Folder) Get(service string) (Rollout, error) {
	f.refresh()
	f.mu.Lock()
	defer f.mu.Unlock()
	e := f.known[fileOf(service)]
	if e == nil {
		return Rollout{}, errors.Join(fmt.Errorf("%w of %q", ErrNone, service), f.problem)
	}
	return e.r, e.err
}

// Orders are what a host is told. A file whose content is wrong says nothing: the host's own
// configuration holds for its service. While another request reads files, the last orders hold.
func (f *Folder) Orders(host string) []Order {
	f.mu.Lock()
	old, first := time.Since(f.looked) > fresh, f.looked.IsZero()
	f.mu.Unlock()
	if first {
		f.refresh()
	} else if old && f.reading.TryLock() {
		f.readFiles()
		f.reading.Unlock()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	var all []Order
	for _, e := range f.known {
		if e.err == nil {
			all = append(all, Order{Service: e.r.Service(), Approved: e.all || e.on[host]})
		}
	}
	slices.SortFunc(all, func(a, b Order) int { return strings.Compare(a.Service, b.Service) })
	return all
}

func (f *Folder) refresh() {
	f.reading.Lock()
	defer f.reading.Unlock()
	f.readFiles()
}

// readFiles reads the files that have changed.
func (f *Folder) readFiles() {
	f.mu.Lock()
	known := maps.Clone(f.known)
	f.mu.Unlock()
	next, err := f.files(known)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.problem, f.looked = err, time.Now(); next != nil {
		f.known = next
	}
}

// files are the entries now. nil: the folder cannot be read, and what is known stays.
func (f *Folder) files(known map[string]*entry) (map[string]*entry, error) {
	files, err := os.ReadDir(f.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return map[string]*entry{}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read rollouts: %w", err)
	}
	var problems []error
	next := map[string]*entry{}
	for _, d := range files {
		name := d.Name()
		if !strings.HasSuffix(name, ".json") || strings.HasPrefix(name, ".") {
			continue
		}
		if len(next) == mostRollouts {
			problems = append(problems, fmt.Errorf("read rollouts: %s has more than %d: forget some that have ended", f.dir, mostRollouts))
			break
		}
		e, err := f.entryOf(d, known[name])
		if e != nil {
			next[name] = e
			err = errors.Join(err, e.err)
		}
		if err != nil {
			problems = append(problems, err)
		}
	}
	return next, errors.Join(problems...)
}

// entryOf is a file's entry: the known one, where it has not changed or cannot be read now.
func (f *Folder) entryOf(d fs.DirEntry, known *entry) (*entry, error) {
	st, err := d.Info()
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return known, fmt.Errorf("read a rollout: %w", err)
	}
	if known != nil && st.Size() == known.size && st.ModTime().Equal(known.time) {
		return known, nil
	}
	e := &entry{size: st.Size(), time: st.ModTime()}
	e.r, e.err = f.read(d.Name())
	var file *fs.PathError
	if errors.As(e.err, &file) { // nothing is known of its content
		return known, e.err
	}
	if e.err == nil {
		e.all, e.on = e.r.approved()
	}
	return e, nil
}

func (f *Folder) read(name string) (Rollout, error) {
	path := filepath.Join(f.dir, name)
	text, err := unix.ReadAtMost(path, mostFile)
	if err != nil {
		return Rollout{}, fmt.Errorf("read a rollout: %w", err)
	}
	var r Rollout
	if err := json.Unmarshal(text, &r); err != nil {
		return Rollout{}, fmt.Errorf("read a rollout: %s: %w: put a copy back, or remove it, and hosts follow their own configuration", path, err)
	}
	if err := r.check(); err != nil || fileOf(r.Service()) != name {
		return Rollout{}, fmt.Errorf("read a rollout: %s is no state of a rollout of this version: %w", path, errors.Join(err, errors.New("put a copy back, or remove it")))
	}
	return r, nil
}

// check refuses a state that no rollout comes to.
func (r Rollout) check() error {
	s, n := r.State, len(r.State.Plan.Replicas)
	before, phases := s.Phase == rollout.Before, []rollout.Phase{rollout.Before, rollout.Widening, rollout.Done, rollout.RolledBack}
	switch {
	case r.Schema != Schema:
		return fmt.Errorf("schema %d, want %d", r.Schema, Schema)
	case !slices.Contains(Indicators, r.Indicator), !slices.Contains(phases, s.Phase), len(s.BoundAt) != n, len(s.Obeyed) != 0 && len(s.Obeyed) != n, s.Looks < 0, r.Told.Tries < 0, r.Told.Tries > mostTries, len(r.Times) != len(s.Events):
		return errors.New("its parts do not fit each other")
	case s.Stage < -1, s.Stage >= len(s.Plan.Stages), before != (s.Stage == -1) && s.Phase != rollout.RolledBack:
		return fmt.Errorf("stage %d in phase %q", s.Stage, s.Phase)
	}
	for _, at := range s.BoundAt {
		if at < -1 || before && at >= 0 || !s.Ended() && at > len(s.Seen) {
			return fmt.Errorf("a replica that is bound from bin %d", at)
		}
	}
	for _, bin := range s.Seen {
		if len(bin) != n {
			return errors.New("a bin without a figure for each replica")
		}
	}
	return s.Plan.Check()
}

// change lets one program at a time change a service's file. do gets the rollout that is there, or
// ErrNone, and says what to write; nil: nothing.
func (f *Folder) change(ctx context.Context, service string, do func(Rollout, error) (*Rollout, error)) error {
	if _, err := os.Stat(f.dir); errors.Is(err, fs.ErrNotExist) {
		_, err := do(Rollout{}, fmt.Errorf("%w of %q", ErrNone, service))
		return err
	}
	unlock, err := f.lock(ctx)
	if err != nil {
		return err
	}
	defer f.refresh() // before anyone asks: a request of a host does not wait for it
	defer unlock()
	r, err := f.read(fileOf(service))
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%w of %q", ErrNone, service)
	}
	next, err := do(r, err)
	if err != nil || next == nil {
		return err
	}
	text, err := json.Marshal(next)
	if err == nil && len(text) > mostFile {
		err = fmt.Errorf("write a rollout: %d bytes, at most %d can be read again", len(text), mostFile)
	}
	if err != nil {
		return err
	}
	if err := unix.ReplaceShared(filepath.Join(f.dir, fileOf(service)), text); err != nil {
		return fmt.Errorf("write a rollout: %w", err)
	}
	return nil
}

func (f *Folder) lock(ctx context.Context) (unlock func(), err error) {
	ctx, stop := context.WithTimeout(ctx, lockWait)
	defer stop()
	file, err := unix.OpenShared(filepath.Join(f.dir, ".lock"), 0)
	if err != nil {
		return nil, fmt.Errorf("lock the rollouts: %w", err)
	}
	for {
		ok, err := unix.TryLock(file)
		if ok {
			f.sweep()
			return func() { _ = file.Close() }, nil
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(fmt.Errorf("lock the rollouts in %s: another program has them: %w", f.dir, errors.Join(err, ctx.Err())), file.Close())
		case <-time.After(lockPoll):
		}
	}
}

// sweep removes what programs left that ended while they wrote: whoever writes has the lock.
func (f *Folder) sweep() {
	left, _ := filepath.Glob(filepath.Join(f.dir, ".new-*")) // the pattern is good
	for _, path := range left {
		_ = os.Remove(path) // the next one tries again
	}
}

// Start begins a rollout, if fewer than most are under way; 0: however many there are. One that has
// ended makes place for it, unless it was vetoed.
func (f *Folder) Start(ctx context.Context, r Rollout, a Asked, most int) error {
	return f.change(ctx, r.Service(), func(old Rollout, err error) (*Rollout, error) {
		all, _ := f.All() // one that cannot be read gives no orders
		if n := UnderWay(all); most > 0 && n >= most {
			return nil, fmt.Errorf("%s under way, at most %d may be", render.Count(n, "rollout"), most)
		}
		switch {
		case errors.Is(err, ErrNone):
			if len(all) >= mostRollouts {
				return nil, fmt.Errorf("there are %d rollouts: forget some that have ended", len(all))
			}
		case err != nil:
			return nil, err
		case old.Vetoed:
			return nil, fmt.Errorf("the owner of %q said no: 'homenode-hub deploy forget' ends that", r.Service())
		case !old.State.Ended():
			return nil, fmt.Errorf("%q has a rollout under way: roll it back first", r.Service())
		default:
			r.Earlier, r.Asked, r.Untold, r.Told = old.ended(), old.Asked, old.Untold, old.Told
		}
		r.note(a)
		return &r, nil
	})
}

// UnderWay counts rollouts that have not ended.
func UnderWay(all []Rollout) (n int) {
	for _, one := range all {
		if !one.State.Ended() {
			n++
		}
	}
	return n
}

// Ask does what a person asks for: pause, resume, rollback or veto.
func (f *Folder) Ask(ctx context.Context, service string, a Asked) error {
	return f.change(ctx, service, func(r Rollout, err error) (*Rollout, error) {
		if err == nil {
			err = r.ask(a)
		}
		return &r, err
	})
}

// Forget removes the file of a rollout that has ended. From then on each host's own configuration
// holds for the service.
func (f *Folder) Forget(ctx context.Context, service string) error {
	return f.change(ctx, service, func(r Rollout, err error) (*Rollout, error) {
		if err != nil {
			return nil, err
		}
		if !r.State.Ended() {
			return nil, fmt.Errorf("the rollout of %q is under way: roll it back first", service)
		}
		return nil, os.Remove(filepath.Join(f.dir, fileOf(service)))
	})
}

// alive says for how long no hub has carried rollouts on, and that one does now.
func (f *Folder) alive(ctx context.Context, now time.Time) (time.Duration, error) {
	path := filepath.Join(f.dir, ".alive")
	gap := time.Duration(0)
	if text, err := unix.ReadAtMost(path, 100); err == nil {
		if at, err := time.Parse(time.RFC3339, string(text)); err == nil {
			gap = now.Sub(at)
		}
	}
	if gap != 0 && gap < aliveEvery && gap > -aliveEvery {
		return max(gap, 0), nil
	}
	unlock, err := f.lock(ctx)
	if err != nil {
		return max(gap, 0), err
	}
	defer unlock()
	return max(gap, 0), unix.ReplaceShared(path, []byte(now.UTC().Format(time.RFC3339)))
}

// aliveEvery is how often that is written down.
const aliveEvery = time.Minute
