// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"homenode/internal/action"
	"homenode/internal/kernel"
)

// crash is what a world panics with at its stop.
type crash struct{}

// world counts every operation, before and after its effect, and stops dead at the
// stop-th. What it did until then stays: that is what a killed process leaves. With torn
// > 0 that stop happens within an append, after that many bytes.
type world struct {
	ticks, stop int
	torn        int

	log     []byte
	archive map[string]string
	appends []int // ticks at which an append began
	sizes   []int // and their lengths

	files     map[Setting]string
	ids       map[string]uint64
	populated bool // an emptied set is refused (ENOSPC)
	writeErr  func(Setting, string) error

	otherAt int // the tick at which another process sets cpusA to othersCPUs; 0: never

	fertile bool // a pinned thread starts another at once, which inherits
	born    int
}

func (w *world) tick() {
	w.ticks++
	if w.ticks == w.otherAt && w.files[cpusA] != "" {
		w.files[cpusA] = othersCPUs
	}
	if w.ticks == w.stop {
		panic(crash{})
	}
}

// op is one operation: it may stop before and after its effect.
func (w *world) op(effect func()) {
	w.tick()
	effect()
	w.tick()
}

// storage

func (w *world) Load() ([]byte, error) { return append([]byte(nil), w.log...), nil }
func (w *world) Sync() error           { w.op(func() {}); return nil }
func (w *world) Unlock()               {}
func (w *world) Close() error          { return nil }

func (w *world) Append(line []byte) error {
	w.appends, w.sizes = append(w.appends, w.ticks), append(w.sizes, len(line))
	if w.torn > 0 && w.ticks+1 == w.stop {
		w.log = append(w.log, line[:w.torn]...)
		panic(crash{})
	}
	w.op(func() { w.log = append(w.log, line...) })
	return nil
}

func (w *world) Truncate(size int64) error {
	w.op(func() { w.log = w.log[:size] })
	return nil
}

func (w *world) Replace(content []byte) error {
	w.op(func() { w.log = append([]byte(nil), content...) })
	return nil
}

func (w *world) Archive(name string, content []byte) error {
	w.archive[name] = string(w.log)
	return w.Replace(content)
}

func (w *world) Aside(name string, content []byte) error {
	w.op(func() { w.archive[name] = string(content) })
	return nil
}

func (w *world) Asides(prefix string) (all []string, err error) {
	for name := range w.archive {
		if strings.HasPrefix(name, prefix) {
			all = append(all, name)
		}
	}
	return slices.Sorted(slices.Values(all)), nil
}

func (w *world) Remove(name string) error {
	delete(w.archive, name)
	return nil
}

// owner: a v2 tree of /demo/a and /demo/b with the controller off at first.

var (
	subtreeRoot = Setting{"/", "cgroup.subtree_control"}
	subtreeDemo = Setting{"/demo", "cgroup.subtree_control"}
	cpusA       = Setting{"/demo/a", "cpuset.cpus"}
	memsA       = Setting{"/demo/a", "cpuset.mems"}
	cpusB       = Setting{"/demo/b", "cpuset.cpus"}
)

func newWorld() *world {
	return &world{
		archive: map[string]string{},
		files:   map[Setting]string{subtreeRoot: "-", subtreeDemo: "-"},
		ids:     map[string]uint64{"/": 1, "/demo": 2, "/demo/a": 3, "/demo/b": 4},
	}
}

func (w *world) clone() *world {
	c := *w
	c.log = append([]byte(nil), w.log...)
	c.archive, c.files, c.ids = maps.Clone(w.archive), maps.Clone(w.files), maps.Clone(w.ids)
	c.ticks, c.stop, c.torn, c.otherAt, c.appends, c.sizes = 0, 0, 0, 0, nil, nil
	return &c
}

func (w *world) Plan(_ context.Context, step action.Step) ([]Change, error) {
	if _, ok := w.ids[step.Workload]; !ok {
		return nil, fmt.Errorf("act on %s: %w", step.Workload, kernel.ErrGone)
	}
	s, value := Setting{step.Workload, "cpuset.cpus"}, step.CPUs.String()
	if step.Kind == action.SetMems {
		s, value = Setting{step.Workload, "cpuset.mems"}, step.Nodes.String()
	}
	return []Change{{Setting: subtreeRoot, New: "+"}, {Setting: subtreeDemo, New: "+"}, {Setting: s, New: value}}, nil
}

func (w *world) Read(s Setting) (Current, error) {
	w.tick()
	id, ok := w.ids[s.Cgroup]
	if !ok {
		return Current{}, fmt.Errorf("read %s: %w", s, kernel.ErrGone)
	}
	v, ok := w.files[s]
	if !ok {
		return Current{}, fmt.Errorf("read %s: %w", s, kernel.ErrNotSupported)
	}
	return Current{v, id}, nil
}

func (w *world) Same(_ Setting, current, recorded string) bool { return current == recorded }

func (w *world) Write(p Permit, s Setting, value string) (err error) {
	if !p.Valid() {
		return errors.New("no permit")
	}
	if w.writeErr != nil {
		if err := w.writeErr(s, value); err != nil {
			return err
		}
	}
	if _, ok := w.files[s]; !ok {
		return fmt.Errorf("write %s: %w", s, kernel.ErrNotSupported)
	}
	if value == "" && w.populated {
		w.tick()
		return fmt.Errorf("write %s: %w", s, ErrNeedsValue)
	}
	w.op(func() {
		if w.set(s, value); w.fertile && strings.HasPrefix(s.Cgroup, "thread ") && value != threadsHad {
			w.bear(value)
		}
	})
	return nil
}

// threadsHad is what fertile threads have, and what their children would have without us.
const threadsHad = "0-7"

func (w *world) bear(value string) Setting {
	w.born++
	s := Setting{fmt.Sprintf("thread %d", 100+w.born), "affinity"}
	w.ids[s.Cgroup], w.files[s] = w.Clock(s), value
	return s
}

// Clock advances with each birth.
func (w *world) Clock(s Setting) uint64 {
	if strings.HasPrefix(s.Cgroup, "thread ") {
		return uint64(1000 + w.born)
	}
	return 0
}

func (w *world) Original(_ Setting, value string) string { return value }

func (w *world) Inherited(f Family) (all []Inherited, err error) {
	w.tick()
	for s, v := range w.files {
		id := w.ids[s.Cgroup]
		if w.Clock(s) > 0 && slices.Contains(f.Values, v) && id >= f.Since && !f.Known(s, id) {
			all = append(all, Inherited{s, id, v})
		}
	}
	slices.SortFunc(all, func(a, b Inherited) int { return cmp.Compare(a.ID, b.ID) })
	return all, nil
}

// set gives the cpuset files to the cgroups below, or takes them away.
func (w *world) set(s Setting, value string) {
	w.files[s] = value
	switch {
	case s == subtreeDemo && value == "+":
		w.files[cpusA], w.files[memsA], w.files[cpusB] = "", "", ""
	case s == subtreeDemo:
		delete(w.files, cpusA)
		delete(w.files, memsA)
		delete(w.files, cpusB)
	}
}

func (w *world) Equivalent(Setting, string) (string, error) { return "0-7", nil }

func (w *world) Move(_ context.Context, p Permit, step action.Step) action.Outcome {
	return action.Outcome{Step: step, Status: action.Done, Detail: fmt.Sprint(p.Valid())}
}
