// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	sys "golang.org/x/sys/unix"

	"homenode/internal/action"
	"homenode/internal/journal"
	"homenode/internal/kernel"
	"homenode/internal/kernel/cgroup"
	"homenode/internal/kernel/kerneltest"
	"homenode/internal/kernel/migrate"
	"homenode/internal/kernel/unix"
	"homenode/internal/migration"
	"homenode/internal/owner"
	"homenode/internal/set"
	"homenode/internal/unit"
)

const top = "/sys/fs/cgroup"

// fakeKernel is a tree whose writes do what the kernel's would: "+cpuset" gives
// the cgroups below their files, an emptied set is refused while populated.
type fakeKernel struct {
	t         *testing.T
	root      unix.Root
	v1        bool
	populated bool
	refuse    func(path, value string) error
	writes    []string
}

func (k *fakeKernel) write(path, value string) error {
	rel, _ := filepath.Rel(k.root.Path("/"), path)
	k.writes = append(k.writes, "/"+rel+" = "+value)
	if k.refuse != nil {
		if err := k.refuse(path, value); err != nil {
			return err
		}
	}
	if _, err := os.Stat(path); err != nil {
		return err
	}
	if filepath.Base(path) == subtreeFile {
		return k.subtree(filepath.Dir(path), value == controllerOn)
	}
	if value == "" && k.populated {
		return sys.ENOSPC
	}
	return os.WriteFile(path, []byte(value+"\n"), 0o644)
}

func (k *fakeKernel) subtree(dir string, on bool) error {
	text := ""
	if on {
		text = "cpuset"
	}
	if err := os.WriteFile(filepath.Join(dir, subtreeFile), []byte(text+"\n"), 0o644); err != nil {
		return err
	}
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		for _, f := range []string{cpusFile, memsFile} {
			name := filepath.Join(dir, e.Name(), f)
			if e.IsDir() && on {
				_ = os.WriteFile(name, []byte("\n"), 0o644)
			} else if e.IsDir() {
				os.Remove(name)
			}
		}
	}
	return nil
}

// boot makes an applier on a fake tree. Only tests inside this package can.
func boot(t *testing.T, files kerneltest.Files, cfg Config) (*Applier, *fakeKernel) {
	t.Helper()
	root := kerneltest.Tree(t, files)
	layout, err := cgroup.Find(root)
	if err != nil {
		t.Fatal(err)
	}
	k := &fakeKernel{t: t, root: root, v1: !layout.Cpuset.V2}
	return &Applier{cfg: cfg, layout: layout, write: k.write, maps: owner.NewMaps(root, layout), lane: &lane{limit: time.Minute}}, k
}

func v2() kerneltest.Files {
	return kerneltest.Files{
		"/proc/self/mountinfo":                  "41 31 0:38 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
		top + "/cgroup.controllers":             "cpuset cpu\n",
		top + "/cgroup.subtree_control":         "cpu\n",
		top + "/cpuset.cpus.effective":          "0-7\n",
		top + "/cpuset.mems.effective":          "0-3\n",
		top + "/demo/cgroup.subtree_control":    "\n",
		top + "/demo/a/cgroup.subtree_control":  "\n",
		top + "/demo/a/cgroup.procs":            "10\n",
		top + "/demo/b/cgroup.procs":            "",
		top + "/x.slice/cgroup.subtree_control": "\n",
		top + "/x.slice/y/cgroup.procs":         "",
		top + "/default/c1/cgroup.procs":        "20\n",
		"/proc/20/stat":                         taskStat("containerd-shim"),
		"/proc/20/status":                       "Uid:\t0\t0\t0\t0\n",
	}
}

func taskStat(name string) string {
	return "20 (" + name + ") S 1 20 20 0 -1 0 0 0 0 0 1 1 0 0 20 0 1 0 9 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 17 2 0 0 0 0 0\n"
}

func v1() kerneltest.Files {
	c := top + "/cpuset"
	return kerneltest.Files{
		"/proc/self/mountinfo":    "34 31 0:31 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n",
		c + "/cpuset.cpus":        "0-7\n",
		c + "/cpuset.mems":        "0-3\n",
		c + "/demo/cpuset.cpus":   "0-7\n",
		c + "/demo/cpuset.mems":   "0-3\n",
		c + "/demo/a/cpuset.cpus": "0-7\n",
		c + "/demo/a/cpuset.mems": "0-3\n",
	}
}

func open(t *testing.T) *journal.Journal {
	t.Helper()
	j, err := journal.Open(filepath.Join(t.TempDir(), "journal"))
	if err != nil {
		t.Skipf("no journal on this host: %v", err)
	}
	t.Cleanup(func() { j.Close() })
	return j
}

var (
	ctx     = context.Background()
	setCPUs = action.Step{Kind: action.SetCPUs, Workload: "/demo/a", CPUs: set.FromCPUs(2, 3)}
	setMems = action.Step{Kind: action.SetMems, Workload: "/demo/a", Nodes: set.FromNodes(1)}
)

func content(t *testing.T, k *fakeKernel, path string) string {
	t.Helper()
	data, err := os.ReadFile(k.root.Path(path))
	if errors.Is(err, os.ErrNotExist) {
		return "(none)"
	}
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(data))
}

func TestBindAndRestoreV2(t *testing.T) {
	a, k := boot(t, v2(), Config{})
	j := open(t)
	for _, step := range []action.Step{setCPUs, setMems, setCPUs} {
		if o := j.Wrap(a).Apply(ctx, step); o.Status != action.Done {
			t.Fatalf("%s: %s: %s", step.Kind, o.Status, o.Detail)
		}
	}
	want := []string{
		top + "/cgroup.subtree_control = +cpuset", top + "/demo/cgroup.subtree_control = +cpuset",
		top + "/demo/a/cpuset.cpus = 2-3", top + "/demo/a/cpuset.mems = 1",
	}
	if got := strings.Join(k.writes, "\n"); got != strings.Join(want, "\n") {
		t.Errorf("wrote\n%s", got)
	}
	if !j.Ours("/demo/a", "cpuset.cpus", "2-3") {
		t.Error("the journal does not know the binding")
	}
	k.populated = true // the empty originals are refused; without the controller they are back all the same
	got, err := j.Restore(ctx, a)
	if err != nil || len(j.Outstanding())+len(j.Equivalents()) != 0 {
		t.Errorf("%v, %v: outstanding %v", got, err, j.Outstanding())
	}
	if c := content(t, k, top+"/demo/a/cpuset.cpus"); c != "(none)" || content(t, k, top+"/demo/cgroup.subtree_control") != "" {
		t.Errorf("cpuset.cpus is %q", c)
	}
}

func TestPopulatedKeepsAnEquivalentV2(t *testing.T) {
	a, k := boot(t, v2(), Config{})
	k.subtree(k.root.Path(top), true)
	k.subtree(k.root.Path(top+"/demo"), true)
	k.populated = true
	j := open(t)
	j.Wrap(a).Apply(ctx, setMems)
	got, err := j.Restore(ctx, a)
	if err != nil || len(got) != 1 || got[0].Result != journal.Equivalent || content(t, k, top+"/demo/a/cpuset.mems") != "0-3" {
		t.Errorf("%v, %v", got, err)
	}
}

// A neighbour's cpuset would be lost with the controller: it stays on.
func TestControllerStaysOnForOthers(t *testing.T) {
	a, k := boot(t, v2(), Config{})
	j := open(t)
	j.Wrap(a).Apply(ctx, setCPUs)
	kerneltest.Write(t, k.root, kerneltest.Files{top + "/demo/b/cpuset.cpus": "5\n"})
	got, err := j.Restore(ctx, a)
	if err != nil || content(t, k, top+"/demo/b/cpuset.cpus") != "5" || len(j.Outstanding()) == 0 {
		t.Errorf("%v, %v", got, err)
	}
	kerneltest.Write(t, k.root, kerneltest.Files{top + "/demo/b/cpuset.cpus": "\n"})
	if got, err := j.Restore(ctx, a); err != nil || len(j.Outstanding()) != 0 {
		t.Errorf("%v, %v", got, err)
	}
}

func TestBindAndRestoreV1(t *testing.T) {
	a, k := boot(t, v1(), Config{})
	j := open(t)
	for _, step := range []action.Step{setCPUs, setMems} {
		if o := j.Wrap(a).Apply(ctx, step); o.Status != action.Done {
			t.Fatalf("%s: %s: %s", step.Kind, o.Status, o.Detail)
		}
	}
	if len(k.writes) != 2 || content(t, k, top+"/cpuset/demo/a/cpuset.mems") != "1" {
		t.Errorf("wrote %v", k.writes)
	}
	if _, err := j.Restore(ctx, a); err != nil || content(t, k, top+"/cpuset/demo/a/cpuset.cpus") != "0-7" {
		t.Errorf("%v", err)
	}
}

// On v1, CPUs that go offline are taken out of every cpuset. What is left of our value is
// still ours, and what is left of the original is what can be restored.
func TestHotplugV1(t *testing.T) {
	a, k := boot(t, v1(), Config{})
	j := open(t)
	j.Wrap(a).Apply(ctx, setCPUs)
	c := top + "/cpuset"
	kerneltest.Write(t, k.root, kerneltest.Files{c + "/cpuset.cpus": "0-2\n", c + "/demo/cpuset.cpus": "0-2\n", c + "/demo/a/cpuset.cpus": "2\n"})
	k.refuse = func(_, value string) error {
		if value == "0-7" {
			return sys.EINVAL
		}
		return nil
	}
	got, err := j.Restore(ctx, a)
	if err != nil || got[0].Result != journal.Equivalent || content(t, k, c+"/demo/a/cpuset.cpus") != "0-2" {
		t.Errorf("%v, %v: %s", got, err, content(t, k, c+"/demo/a/cpuset.cpus"))
	}
}

func TestRefusals(t *testing.T) {
	a, k := boot(t, v2(), Config{})
	j := open(t)
	step := func(id string) action.Step { s := setCPUs; s.Workload = id; return s }
	far, none := setCPUs, setCPUs
	far.CPUs, none.CPUs = set.FromCPUs(3, 9), set.CPUSet{}
	for _, c := range []struct {
		step   action.Step
		status action.Status
		text   string
	}{
		{step("/x.slice/y"), action.Refused, "owned by systemd"},
		{step("/default/c1"), action.Refused, "owned by containerd"},
		{step("/demo/zzz"), action.Gone, "/demo/zzz"},
		{step("/"), action.Refused, "below the root"},
		{step("/demo/../demo/a"), action.Refused, "path of a cgroup"},
		{far, action.Refused, "not 9"},
		{none, action.Refused, "empty"},
		{action.Step{Kind: action.MovePages, Workload: "/demo/a"}, action.Refused, "no mover"},
	} {
		if o := j.Wrap(a).Apply(ctx, c.step); o.Status != c.status || !strings.Contains(o.Detail, c.text) {
			t.Errorf("%s: %s: %s", c.step.Workload, o.Status, o.Detail)
		}
	}
	if len(k.writes) != 0 {
		t.Errorf("wrote %v", k.writes)
	}
	a.cfg.DirectOwners = []string{"systemd"}
	if o := j.Wrap(a).Apply(ctx, step("/x.slice/y")); o.Status != action.Done {
		t.Errorf("direct owner: %s: %s", o.Status, o.Detail)
	}
	for errno, text := range map[error]string{sys.EBUSY: "processes of its own", sys.EACCES: "write access"} {
		b, k := boot(t, v2(), Config{})
		k.refuse = func(string, string) error { return errno }
		if o := j.Wrap(b).Apply(ctx, step("/demo/b")); o.Status != action.Refused || !strings.Contains(o.Detail, text) {
			t.Errorf("%v: %s: %s", errno, o.Status, o.Detail)
		}
	}
}

func TestNobodyActsWithoutPermitOrLive(t *testing.T) {
	a, k := boot(t, v2(), Config{})
	if err := a.Write(journal.Permit{}, journal.Setting{Cgroup: "/demo/a", File: cpusFile}, "1"); err == nil || len(k.writes) != 0 {
		t.Errorf("without permit: %v, wrote %v", err, k.writes)
	}
	if _, err := New(kernel.LiveToken{}, Config{}); err == nil {
		t.Error("an applier without the running kernel")
	}
}

type fakeMover struct{ got migrate.Request }

func (m *fakeMover) Move(_ context.Context, req migrate.Request) (migration.Result, error) {
	m.got = req
	var r migration.Result
	r.Of(migration.Anon).Moved = unit.MiB
	r.Of(migration.Anon).Fail("EACCES", 4096)
	return r, nil
}

func TestMove(t *testing.T) {
	m := &fakeMover{}
	a, _ := boot(t, v2(), Config{Mover: m})
	o := open(t).Wrap(a).Apply(ctx, action.Step{Kind: action.MovePages, Workload: "/demo/a", Nodes: set.FromNodes(1), Budget: unit.MiB, Rate: unit.GiB, MaxStall: time.Second, PageCache: true})
	if r := m.got; !r.Cache || !r.LeaveForeign || r.Rate != unit.GiB || r.MaxStall != time.Second || r.Budget != unit.MiB {
		t.Errorf("asked the mover for %+v", r)
	}
	if o.Status != action.InProgress || o.Moved != unit.MiB || o.Failed != 4096 || len(m.got.PIDs) != 1 || m.got.PIDs[0] != 10 {
		t.Errorf("%+v from %+v", o, m.got)
	}
}

// TestLive binds and restores a cgroup of this host.
func TestLive(t *testing.T) {
	a, err := New(kernel.Live(), Config{})
	if err != nil {
		t.Skipf("this host's cgroups cannot be acted upon: %v", err)
	}
	dir := a.layout.Path(a.layout.Cpuset, "/homenode-test-owner", "")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Skipf("no cgroup can be made here: %v", err)
	}
	defer os.Remove(dir)
	var buf unix.Buffer
	all, err := a.layout.ReadEffective("/", &buf)
	if err != nil {
		t.Fatal(err)
	}
	first, _ := all.CPUs.First()
	step := action.Step{Kind: action.SetCPUs, Workload: "/homenode-test-owner", CPUs: set.FromCPUs(first)}
	before := readAll(dir)
	j := open(t)
	if o := j.Wrap(a).Apply(ctx, step); o.Status != action.Done {
		t.Fatalf("%s: %s", o.Status, o.Detail)
	}
	step.Kind, step.Nodes = action.SetMems, all.Mems
	if o := j.Wrap(a).Apply(ctx, step); o.Status != action.Done || readAll(dir) == before {
		t.Fatalf("%s: %s", o.Status, o.Detail)
	}
	got, err := j.Restore(ctx, a)
	if err != nil || readAll(dir) != before || len(j.Outstanding()) != 0 {
		t.Errorf("%v, %v: %s, want %s", got, err, readAll(dir), before)
	}
}

func readAll(dir string) string {
	cpus, err1 := os.ReadFile(filepath.Join(dir, cpusFile))
	mems, err2 := os.ReadFile(filepath.Join(dir, memsFile))
	if err1 != nil || err2 != nil {
		return "none"
	}
	return string(cpus) + "|" + string(mems)
}
