// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"homenode/internal/kernel/unix"
)

// Folder has a file for each service. It is safe for concurrent use, by several programs, too.
type Folder struct {
	dir string

	mu     sync.Mutex
	known  map[string]*entry // by file name
	looked time.Time         // when files were last looked at
}

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
	mostName     = 200
	lockWait     = 10 * time.Second
	lockPoll     = 20 * time.Millisecond
	// fresh is how old an order of another program may be: each request of each host asks for them.
	fresh = time.Second
)

// ErrNone is wrapped where a service has no rollout.
var ErrNone = errors.New("no rollout")

// NewFolder makes the folder if it is not there.
func NewFolder(dir string) (*Folder, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the folder of rollouts: %w", err)
	}
	return &Folder{dir: dir, known: map[string]*entry{}}, nil
}

// fileOf names a service's file: a service may have any bytes, and a file's name has a bound.
func fileOf(service string) string {
	name := url.PathEscape(service)
	if len(name) > mostName || strings.HasPrefix(name, ".") {
		sum := sha256.Sum256([]byte(service))
		name = "sha256-" + hex.EncodeToString(sum[:])
	}
	return name + ".json"
}

// All are the rollouts by service. A file that cannot be read is an error beside them.
func (f *Folder) All() ([]Rollout, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	err := f.refresh()
	var all []Rollout
	for _, e := range f.known {
		if e.err == nil {
			all = append(all, e.r)
		}
	}
	slices.SortFunc(all, func(a, b Rollout) int { return strings.Compare(a.Service(), b.Service()) })
	return all, err
}

// Get is one service's rollout.
func (f *Folder) Get(service string) (Rollout, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	_ = f.refresh() // of other files
	e := f.known[fileOf(service)]
	if e == nil {
		return Rollout{}, fmt.Errorf("%w of %q", ErrNone, service)
	}
	return e.r, e.err
}

// Orders are what a host is told. A file that cannot be read says nothing: the host's own
// configuration holds for its service.
func (f *Folder) Orders(host string) []Order {
	f.mu.Lock()
	defer f.mu.Unlock()
	if time.Since(f.looked) > fresh {
		_ = f.refresh() // the runner says so
	}
	var all []Order
	for _, e := range f.known {
		if e.err == nil {
			all = append(all, Order{Service: e.r.Service(), Approved: e.all || e.on[host]})
		}
	}
	slices.SortFunc(all, func(a, b Order) int { return strings.Compare(a.Service, b.Service) })
	return all
}

// refresh reads the files that have changed.
func (f *Folder) refresh() error {
	f.looked = time.Now()
	files, err := os.ReadDir(f.dir)
	if err != nil {
		return fmt.Errorf("read rollouts: %w", err)
	}
	var problems []error
	there := map[string]bool{}
	for _, d := range files {
		if !strings.HasSuffix(d.Name(), ".json") || strings.HasPrefix(d.Name(), ".") {
			continue
		}
		if len(there) == mostRollouts {
			problems = append(problems, fmt.Errorf("read rollouts: %s has more than %d: forget some that have ended", f.dir, mostRollouts))
			break
		}
		st, err := d.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		there[d.Name()] = true
		e := f.known[d.Name()]
		if err == nil && (e == nil || st.Size() != e.size || !st.ModTime().Equal(e.time)) {
			e = &entry{size: st.Size(), time: st.ModTime()}
			e.r, e.err = f.read(d.Name())
			e.all, e.on = e.r.approved()
			f.known[d.Name()] = e
		}
		if err = errors.Join(err, e.err); err != nil {
			problems = append(problems, err)
		}
	}
	for name := range f.known {
		if !there[name] {
			delete(f.known, name)
		}
	}
	return errors.Join(problems...)
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
	if r.Schema != Schema {
		return fmt.Errorf("schema %d, want %d", r.Schema, Schema)
	}
	if !slices.Contains(Indicators, r.Indicator) || len(s.BoundAt) != n || s.Stage < -1 || s.Stage >= len(s.Plan.Stages) {
		return errors.New("its parts do not fit each other")
	}
	for _, bin := range s.Seen {
		if len(bin) != n {
			return errors.New("a bin has not a figure for each replica")
		}
	}
	return s.Plan.Check()
}

// change lets one program at a time change a service's file. do gets the rollout that is there, or
// ErrNone, and says what to write; nil: nothing.
func (f *Folder) change(ctx context.Context, service string, do func(Rollout, error) (*Rollout, error)) error {
	unlock, err := f.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	defer f.stale()
	r, err := f.read(fileOf(service))
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%w of %q", ErrNone, service)
	}
	next, err := do(r, err)
	if err != nil || next == nil {
		return err
	}
	text, err := json.Marshal(next)
	if err != nil {
		return err
	}
	if err := unix.ReplaceFile(filepath.Join(f.dir, fileOf(service)), text); err != nil {
		return fmt.Errorf("write a rollout: %w", err)
	}
	return nil
}

// stale has the next orders look at the files.
func (f *Folder) stale() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.looked = time.Time{}
}

func (f *Folder) lock(ctx context.Context) (unlock func(), err error) {
	ctx, stop := context.WithTimeout(ctx, lockWait)
	defer stop()
	file, err := os.OpenFile(filepath.Join(f.dir, ".lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock the rollouts: %w", err)
	}
	if err := unix.GiveToOwner(file, f.dir); err != nil {
		return nil, errors.Join(fmt.Errorf("lock the rollouts: %w", err), file.Close())
	}
	for {
		ok, err := unix.TryLock(file)
		if ok {
			return func() { _ = file.Close() }, nil
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(fmt.Errorf("lock the rollouts in %s: another program has them: %w", f.dir, errors.Join(err, ctx.Err())), file.Close())
		case <-time.After(lockPoll):
		}
	}
}

// Start begins a rollout. One that has ended makes place for it, unless it was vetoed.
func (f *Folder) Start(ctx context.Context, r Rollout, a Asked) error {
	return f.change(ctx, r.Service(), func(old Rollout, err error) (*Rollout, error) {
		switch {
		case errors.Is(err, ErrNone):
			if all, _ := f.All(); len(all) >= mostRollouts {
				return nil, fmt.Errorf("there are %d rollouts: forget some that have ended", len(all))
			}
		case err != nil:
			return nil, err
		case old.Vetoed:
			return nil, fmt.Errorf("the owner of %q said no: 'homenode-hub deploy forget' ends that", r.Service())
		case !old.State.Ended():
			return nil, fmt.Errorf("%q has a rollout under way: roll it back first", r.Service())
		default:
			r.Earlier, r.Asked = old.ended(), old.Asked
		}
		r.note(a)
		return &r, nil
	})
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
