// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	sys "golang.org/x/sys/unix"

	"homenode/internal/action"
	"homenode/internal/actuate"
	"homenode/internal/journal"
	"homenode/internal/kernel"
	"homenode/internal/kernel/kerneltest"
	"homenode/internal/kernel/migrate"
	"homenode/internal/kernel/unix"
	"homenode/internal/migration"
	"homenode/internal/set"
)

// scene is the loop on one workload, /demo/a. Reader, actuate, journal and owner are the
// real ones; the kernel under them is a tree. The memory is on node 0 and is to move to
// node 1.
type scene struct {
	t        *testing.T
	k        *fakeKernel
	a        *Applier
	j        *journal.Journal
	r        *kernel.Reader
	at       time.Time
	jobs     actuate.State
	outcomes []action.Outcome
	all      []action.Outcome // of all rounds
	before   map[journal.Setting]string
}

const sceneAnon = 64 << 20

func sceneFiles(version string) kerneltest.Files {
	files := kerneltest.TwoNodes().With(kerneltest.Files{"/proc/10/numa_maps": "", "/proc/10/task/10/stat": taskStat("x")})
	if version == "v1" {
		c := top + "/cpuset"
		files = files.With(kerneltest.Files{
			"/proc/self/mountinfo": "34 31 0:31 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset,memory\n",
			c + "/cpuset.cpus":     "0-3\n", c + "/cpuset.mems": "0-1\n",
			c + "/demo/cpuset.cpus": "0-3\n", c + "/demo/cpuset.mems": "0-1\n",
			c + "/demo/a/cpuset.cpus": "0-3\n", c + "/demo/a/cpuset.mems": "0-1\n",
			c + "/demo/a/cgroup.procs": "10\n", c + "/demo/a/tasks": "10\n",
		})
	} else {
		files = files.With(kerneltest.Files{
			"/proc/self/mountinfo":      "41 31 0:38 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
			top + "/cgroup.controllers": "cpuset cpu memory\n", top + "/cgroup.subtree_control": "cpu memory\n",
			top + "/cpuset.cpus.effective": "0-3\n", top + "/cpuset.mems.effective": "0-1\n",
			top + "/demo/cgroup.subtree_control":   "\n",
			top + "/demo/a/cgroup.subtree_control": "\n", top + "/demo/a/cgroup.events": "populated 1\n",
			top + "/demo/a/cgroup.procs": "10\n", top + "/demo/a/cgroup.threads": "10\n",
		})
	}
	return files
}

func newScene(t *testing.T, version string) *scene {
	t.Helper()
	s := &scene{t: t, at: time.Unix(1000, 0), j: open(t)}
	s.a, s.k = boot(t, sceneFiles(version), Config{Mover: s})
	s.k.populated = true
	s.pages(0)
	r, err := kernel.NewReader(kernel.Config{Root: s.k.root, Roots: []string{"/demo/*"}, Ours: s.j.Ours, Now: func() time.Time { return s.at }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	s.r, s.before = r, s.settings()
	return s
}

// pages puts the workload's memory on a node.
func (s *scene) pages(node int) {
	by := [2]int{}
	by[node] = sceneAnon
	text := fmt.Sprintf("anon N0=%d N1=%d\nfile N0=0 N1=0\n", by[0], by[1])
	if s.k.v1 {
		text = fmt.Sprintf("total=%d N0=%d N1=%d\nfile=0 N0=0 N1=0\nanon=%d N0=%d N1=%d\nunevictable=0 N0=0 N1=0\n",
			sceneAnon>>12, by[0]>>12, by[1]>>12, sceneAnon>>12, by[0]>>12, by[1]>>12)
	}
	dir := s.a.layout.Path(s.a.layout.Cpuset, "/demo/a", "")
	if _, err := os.Stat(dir); err == nil {
		_ = os.WriteFile(filepath.Join(dir, "memory.numa_stat"), []byte(text), 0o644)
	}
}

// Move is the mover of the scene.
func (s *scene) Move(_ context.Context, req migrate.Request) (migration.Result, error) {
	s.pages(req.To.IDs()[0])
	r := migration.Result{Complete: true}
	r.Of(migration.Anon).Moved = sceneAnon
	return r, nil
}

// settings returns the present value of everything that may be written.
func (s *scene) settings() map[journal.Setting]string {
	all := map[journal.Setting]string{}
	for _, w := range []journal.Setting{{Cgroup: "/", File: subtreeFile}, {Cgroup: "/demo", File: subtreeFile}, {Cgroup: "/demo/a", File: cpusFile}, {Cgroup: "/demo/a", File: memsFile}} {
		if cur, err := s.a.Read(w); err == nil {
			all[w] = cur.Value
		}
	}
	return all
}

// round is one window, as in the agent.
func (s *scene) round(bind bool) {
	s.t.Helper()
	s.at = s.at.Add(10 * time.Second)
	w, err := s.r.Read(ctx)
	if err != nil {
		s.t.Fatalf("no window: %v", err)
	}
	w.Outcomes = s.outcomes
	var wanted []action.Action
	_, busy := s.jobs.Job("/demo/a")
	_, here := w.Workload("/demo/a")
	switch {
	case bind && !busy && here:
		wanted = []action.Action{{Kind: action.Bind, Workload: "/demo/a", Nodes: set.FromNodes(1)}}
	case !bind && busy:
		wanted = []action.Action{{Kind: action.Unbind, Workload: "/demo/a"}}
	}
	var steps []action.Step
	s.jobs, steps, s.outcomes = actuate.Step(s.r.Machine(), actuate.DefaultConfig(), s.jobs, wanted, w)
	stopped := false
	for _, step := range steps {
		if stopped {
			continue
		}
		o := s.j.Wrap(s.a).Apply(ctx, step)
		stopped = o.Status != action.Done && o.Status != action.InProgress
		s.outcomes = append(s.outcomes, o)
	}
	s.all = append(s.all, s.outcomes...)
	s.onRecord()
}

// onRecord: every value that is not the original is in the journal, as it is now.
func (s *scene) onRecord() {
	s.t.Helper()
	known := append(s.j.Outstanding(), s.j.Equivalents()...)
	for w, now := range s.settings() {
		was, there := s.before[w]
		if !there && now == "" || now == was { // a file that came with the controller
			continue
		}
		if !slices.ContainsFunc(known, func(e journal.Entry) bool { return e.Setting == w && slices.Contains(e.Ours, now) }) {
			s.t.Errorf("%s is %q, was %q, and the journal has %+v", w, now, was, known)
		}
	}
}

const sceneRounds = 16 // a way that nothing stops takes 5

// play runs a whole life: bound, unbound, ended.
func (s *scene) play() {
	s.t.Helper()
	for range sceneRounds {
		s.round(true)
	}
	s.bound()
	for range sceneRounds {
		s.round(false)
	}
	s.end()
}

// bound checks that the workload is bound, or at least on the node's CPUs with a stage
// that says why not more.
func (s *scene) bound() {
	s.t.Helper()
	job, _ := s.jobs.Job("/demo/a")
	now := s.settings()
	if now[journal.Setting{Cgroup: "/demo/a", File: cpusFile}] != "2-3" || job.Stage != actuate.StageBound && (job.Stage != actuate.StageCPUsOnly || job.Why.Rule == "") {
		s.t.Errorf("not bound in %d rounds: %+v; %v; %s", sceneRounds, job, now, s.story())
	}
}

func (s *scene) end() {
	s.t.Helper()
	restored, err := s.j.Restore(ctx, s.a)
	if err != nil {
		s.t.Errorf("%v; %v", restored, err)
	}
	if now := s.settings(); !maps.Equal(now, s.before) || len(s.j.Outstanding()) != 0 {
		s.t.Errorf("left behind: %v, was %v; outstanding %v; %s", now, s.before, s.j.Outstanding(), s.story())
	}
}

func (s *scene) story() string {
	text := ""
	for _, o := range s.all {
		text += fmt.Sprintf("\n%s %s: %s", o.Step.Kind, o.Status, o.Detail)
	}
	return text
}

// failAt makes the n-th write fail, with nothing written.
func (s *scene) failAt(n int, err error) {
	s.k.refuse = func(string, string) error {
		if len(s.k.writes) == n {
			return err
		}
		return nil
	}
}

// Every write of a whole life fails once, with every error. Nothing is left half done
// without a record, the outcome says which error it was, the next rounds continue, and
// the end leaves everything as it was.
func TestEveryWriteFails(t *testing.T) {
	kerneltest.InMemory(t)
	for _, version := range []string{"v2", "v1"} {
		clean := newScene(t, version)
		clean.play()
		writes := len(clean.k.writes)
		if writes < 4 {
			t.Fatalf("%s: only %d writes: %v", version, writes, clean.k.writes)
		}
		for _, errno := range []sys.Errno{sys.EBUSY, sys.EINVAL, sys.ENOSPC, sys.EROFS, sys.EACCES, sys.ENOENT, sys.EIO, sys.ENOMEM} {
			for n := 1; n <= writes; n++ {
				t.Run(fmt.Sprintf("%s/%s/%d", version, sys.ErrnoName(errno), n), func(t *testing.T) { failOnce(t, version, n, errno) })
			}
		}
	}
}

// says maps each error to what an outcome says of it, or to one of these texts.
var says = map[sys.Errno][]string{
	sys.EBUSY:  {"a cgroup below it has more, or it is exclusive", "it has processes of its own", "a cgroup below has it on"},
	sys.EINVAL: {"invalid argument"},
	sys.ENOSPC: {"no space left on device"},
	sys.EROFS:  {"read-only file system (not permitted): it needs write access to cgroup files"},
	sys.EACCES: {"permission denied (not permitted): it needs write access to cgroup files"},
	sys.ENOENT: {"the cpuset controller is off there"},
	sys.EIO:    {"input/output error"},
	sys.ENOMEM: {"cannot allocate memory"},
}

func failOnce(t *testing.T, version string, n int, errno sys.Errno) {
	s := newScene(t, version)
	s.failAt(n, errno)
	for range sceneRounds {
		s.round(true)
	}
	s.bound()
	for range sceneRounds {
		s.round(false)
	}
	inLoop := len(s.k.writes) >= n
	restored, err := s.j.Restore(ctx, s.a)
	if !inLoop && len(s.j.Outstanding()) > 0 && err == nil && !slices.ContainsFunc(restored, func(r journal.Restored) bool { return r.Result == journal.Kept }) {
		t.Errorf("the last restore: %v: an error that is not reported", restored)
	}
	s.onRecord()
	s.k.refuse = nil
	s.end()
	told := slices.ContainsFunc(s.all, func(o action.Outcome) bool {
		return o.Status != action.Done && slices.ContainsFunc(says[errno], func(part string) bool { return strings.Contains(o.Detail, part) })
	})
	if stood := errno == sys.ENOSPC && strings.Contains(s.story(), "equivalent"); inLoop && !told && !stood {
		t.Errorf("write %d (%s) failed, and no outcome reports it: %s", n, s.k.writes[n-1], s.story())
	}
}

// A cgroup file system becomes read-only at some write. Every step is refused with its
// reason, nothing is lost from the record, and once it is writable again everything is
// put back.
func TestReadOnlyInTheMiddle(t *testing.T) {
	kerneltest.InMemory(t)
	for n := 1; n <= 4; n++ {
		s := newScene(t, "v2")
		s.k.refuse = func(string, string) error {
			if len(s.k.writes) >= n {
				return sys.EROFS
			}
			return nil
		}
		for range sceneRounds {
			s.round(true)
		}
		for range sceneRounds {
			s.round(false)
		}
		outstanding := len(s.j.Outstanding())
		restored, err := s.j.Restore(ctx, s.a)
		if n > 1 && (outstanding != n-1 || err == nil || !strings.Contains(err.Error(), "read-only file system")) {
			t.Errorf("from write %d on: %d outstanding; %v, %v", n, outstanding, restored, err)
		}
		if !strings.Contains(s.story(), "refused: set /demo/a cpuset.") && !strings.Contains(s.story(), "refused: set / ") && !strings.Contains(s.story(), "refused: set /demo ") {
			t.Errorf("from write %d on: %s", n, s.story())
		}
		s.k.refuse = nil
		s.end()
	}
}

// A cgroup disappears between any two calls of its owner. The step reports it or was
// done, nothing stays on record, nothing is written elsewhere, and the next rounds
// continue.
func TestCgroupGoneWhileActing(t *testing.T) {
	kerneltest.InMemory(t)
	calls := func(play func(s *scene), at int) (*scene, int) {
		s, n := newScene(t, "v2"), 0
		unix.Interfere = func(string) {
			if n++; n == at {
				kerneltest.Remove(t, s.k.root, top+"/demo/a")
			}
		}
		defer func() { unix.Interfere = nil }()
		play(s)
		return s, n
	}
	life := func(s *scene) {
		for range 6 {
			s.round(true)
		}
		for range 2 {
			s.round(false)
		}
	}
	_, all := calls(life, 0)
	if all < 300 {
		t.Fatalf("only %d calls: nothing was tried", all)
	}
	for n := 1; n <= all; n++ {
		s, _ := calls(life, n)
		if w, err := s.r.Read(ctx); err != nil || len(w.Workloads) != 0 {
			t.Fatalf("gone before call %d: %d workloads, %v", n, len(w.Workloads), err)
		}
		for _, o := range s.all {
			if o.Status != action.Done && o.Status != action.Gone && !(o.Status == action.Refused && strings.Contains(o.Detail, "not supported")) {
				t.Errorf("gone before call %d: %s %s: %s", n, o.Step.Kind, o.Status, o.Detail)
			}
		}
		for k := range s.before {
			if k.Cgroup == "/demo/a" {
				delete(s.before, k)
			}
		}
		s.end()
		if t.Failed() {
			t.Fatalf("gone before call %d of %d", n, all)
		}
	}
}
