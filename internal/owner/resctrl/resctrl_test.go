// SPDX-License-Identifier: Apache-2.0

package resctrl

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	sys "golang.org/x/sys/unix"

	"homenode/internal/action"
	"homenode/internal/journal"
	"homenode/internal/kernel"
	"homenode/internal/kernel/kerneltest"
	"homenode/internal/kernel/resctrl"

	"homenode/internal/kernel/unix"
	"homenode/internal/unit"
)

var ctx = context.Background()

const cg = "/sys/fs/cgroup"

// host has the cgroups /a (threads 10, 11), /b (20) and /a/below (11), and kubelet's.
type host struct {
	t    *testing.T
	fs   *kerneltest.Resctrl
	root unix.Root
	dir  string
	j    *journal.Journal
}

func boot(t *testing.T) *host {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "homenode") // thousands of fsyncs
	if err != nil {
		dir = t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	h := &host{t: t, fs: kerneltest.NewResctrl(), dir: filepath.Join(dir, "journal"), root: kerneltest.Tree(t, kerneltest.Files{
		"/proc/self/mountinfo":     "41 31 0:38 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
		"/proc/cpuinfo":            "processor\t: 0\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 85\n\n",
		cg + "/cgroup.controllers": "cpuset\n",
		cg + "/a/cgroup.threads":   "10\n",
		cg + "/a/x/cgroup.threads": "11\n",
		cg + "/b/cgroup.threads":   "20\n",
		cg + "/kubepods.slice/kubepods-pod1.slice/c/cgroup.threads": "30\n",
	})}
	h.fs.Start(10, 11, 20, 30, 99)
	return h
}

func (h *host) open() *Applier {
	h.t.Helper()
	var err error
	if h.j, err = journal.Open(h.dir); err != nil {
		h.t.Skipf("no journal on this host: %v", err)
	}
	return newApplier(h.root, Config{}, func() (resctrl.Acts, bool, error) { return h.fs, false, nil }, nil, errors.New("no cgroups in this test"))
}

func (h *host) close() { h.j.Close() }

func class(workload string, cache, bandwidth float64) action.Step {
	return action.Step{Kind: action.SetClass, Workload: workload, Class: &action.Class{Cache: unit.Ratio(cache), Bandwidth: unit.Ratio(bandwidth)}}
}

func text(h *host, workload string) string {
	data, err := h.fs.Read(resctrl.ControlName(workload) + "/schemata")
	if err != nil {
		return err.Error()
	}
	return strings.Join(strings.Fields(string(data)), " ")
}

func TestSetAndGiveBack(t *testing.T) {
	h := boot(t)
	a := h.open()
	defer h.close()
	apply := h.j.Wrap(a)
	done := func(s action.Step) {
		t.Helper()
		if o := apply.Apply(ctx, s); o.Status != action.Done {
			t.Fatalf("%v: %s %s", s, o.Status, o.Detail)
		}
	}
	done(class("/a", 0.2, 0.25))
	group := resctrl.ControlName("/a")
	if got := text(h, "/a"); got != "MB:0= 30;1= 30 L3:0=3c000;1=3c000" {
		t.Error(got)
	}
	if h.fs.Group(10) != group || h.fs.Group(11) != group || h.fs.Group(20) != "" {
		t.Error("the threads in it")
	}
	h.fs.Start(12) // from outside
	h.fs.Fork(10, 13)
	kerneltest.Write(t, h.root, kerneltest.Files{cg + "/a/cgroup.threads": "10\n12\n13\n14\n"}) // 14 has ended
	done(class("/a", 0.2, 0.25))
	if h.fs.Group(12) != group || h.fs.Group(13) != group {
		t.Error("newcomers")
	}
	done(class("/a", 0.5, 0)) // the bandwidth stays as it was: the step does not mention it
	if got := text(h, "/a"); !strings.HasSuffix(got, "L3:0=3ff00;1=3ff00") {
		t.Error(got)
	}
	done(class("/b", 0, 0.5))
	done(class("/a", 0, 0))
	done(class("/a", 0, 0))
	if got := h.fs.Groups(); len(got) != 1 || len(a.of) != 1 || h.fs.Group(10) != "" {
		t.Error(got)
	}
	done(class("/a", 0.2, 0.2))
	done(action.Step{Kind: action.Restore, Workload: "/a"})
	if h.fs.Group(10) != "" || h.fs.Group(20) == "" {
		t.Error("the restore of /a")
	}
	got, err := h.j.Restore(ctx, a)
	if err != nil || len(h.fs.Groups()) != 0 || len(h.j.Outstanding()) != 0 {
		t.Errorf("%v, %v; %v", got, err, h.fs.Groups())
	}
}

func cpuinfo(text string) func(*host) {
	return func(h *host) { kerneltest.Write(h.t, h.root, kerneltest.Files{"/proc/cpuinfo": text}) }
}

func TestRefused(t *testing.T) {
	for name, c := range map[string]struct {
		step   action.Step
		before func(h *host)
		want   string
	}{
		"kubelet":   {class("/kubepods.slice/kubepods-pod1.slice/c", 0.5, 0), func(*host) {}, "owned by kubelet"},
		"crio":      {class("/system.slice/crio-1a.scope", 0.5, 0), func(*host) {}, "owned by crio"},
		"podman":    {class("/machine.slice/libpod-1a.scope", 0.5, 0), func(*host) {}, "left alone"},
		"libvirt":   {class("/machine.slice/machine-qemu-1.scope", 0.5, 0), func(*host) {}, "owned by libvirt"},
		"vendor":    {class("/a", 0, 0.5), cpuinfo("processor\t: 0\nvendor_id\t: CentaurHauls\n"), "not known: /proc/cpuinfo names"},
		"no vendor": {class("/a", 0, 0.5), cpuinfo("processor\t: 0\n"), "not known"},
		"damaged":   {class("/a", 0, 0.5), cpuinfo("vendor_id\t: AuthenticAMD\ncpu family\t: x\n"), "not known"},
		"path":      {class("/../a", 0.5, 0), func(*host) {}, "want the path"},
		"share":     {class("/a", 1.5, 0), func(*host) {}, "from 0 to 1"},
		"closids":   {class("/a", 0.5, 0), func(h *host) { h.fs.CLOSIDs = 1 }, "all 1 control groups"},
		"raced":     {class("/a", 0.5, 0), func(h *host) { h.fs.Before = fails("make", sys.ENOSPC) }, "no space left"},
		"limbo":     {class("/a", 0.5, 0), func(h *host) { h.fs.Before = fails("make", sys.EBUSY) }, "busy"},
		"schemata":  {class("/a", 0.5, 0), func(h *host) { h.fs.Before = fails("write", sys.EINVAL) }, "invalid argument"},
		"theirs":    {class("/a", 0.5, 0), func(h *host) { h.theirs("theirs") }, `thread 11 is in resctrl group "theirs"`},
		"monitored": {class("/a", 0.5, 0), func(h *host) { h.theirs("mon_groups/pqos") }, `"mon_groups/pqos", which another process made`},
		"left":      {class("/a", 0.5, 0), func(h *host) { h.fs.Make(resctrl.ControlName("/a")) }, "on no record"},
		"no CAT":    {class("/a", 0.5, 0), func(h *host) { h.fs.Extra["info/L3/num_closids"] = "0" }, "cannot be parted"},
		"AMD": {class("/a", 0, 0.5), func(h *host) {
			kerneltest.Write(h.t, h.root, kerneltest.Files{"/proc/cpuinfo": "processor\t: 0\nvendor_id\t: AuthenticAMD\n"})
		}, "needs a profile"},
	} {
		t.Run(name, func(t *testing.T) {
			h := boot(t)
			a := h.open()
			defer h.close()
			c.before(h)
			theirs := len(h.fs.Groups())
			o := h.j.Wrap(a).Apply(ctx, c.step)
			if o.Status != action.Refused || !strings.Contains(o.Detail, c.want) {
				t.Errorf("%s: %s", o.Status, o.Detail)
			}
			h.fs.Before = nil
			if o := h.j.Wrap(a).Apply(ctx, class(c.step.Workload, 0, 0)); o.Status != action.Done { // as actuate does
				t.Errorf("give back: %s: %s", o.Status, o.Detail)
			}
			if len(h.fs.Groups()) != theirs {
				t.Errorf("%v", h.fs.Groups())
			}
		})
	}
}

func fails(what string, errno error) func(op, name string) error {
	return func(op, name string) error {
		if op == what {
			return errno
		}
		return nil
	}
}

func (h *host) theirs(group string) {
	if err := errors.Join(h.fs.Make(group), h.fs.Write(group+"/tasks", "11")); err != nil {
		h.t.Fatal(err)
	}
}

// The policy's default steps limit cache and bandwidth. Where the bandwidth cannot be
// limited, the cache is limited alone, and the outcome says so.
func TestCacheAlone(t *testing.T) {
	for name, c := range map[string]struct {
		before func(h *host)
		want   string
	}{
		"AMD":    {cpuinfo("processor\t: 0\nvendor_id\t: AuthenticAMD\ncpu family\t: 25\nmodel\t\t: 17\nstepping\t: 1\n"), "needs a profile"},
		"vendor": {cpuinfo("processor\t: 0\nvendor_id\t: CentaurHauls\n"), "not known: /proc/cpuinfo names"},
		"no MBA": {func(h *host) { h.fs.Extra["info/MB/num_closids"] = "0" }, "cannot be limited here"},
	} {
		t.Run(name, func(t *testing.T) {
			h := boot(t)
			a := h.open()
			defer h.close()
			c.before(h)
			for _, step := range []action.Step{class("/a", 0.5, 0.7), class("/a", 0.2, 0.4)} {
				o := h.j.Wrap(a).Apply(ctx, step)
				if o.Status != action.Done || !strings.Contains(o.Detail, "only its cache is limited: ") || !strings.Contains(o.Detail, c.want) {
					t.Errorf("%s: %s", o.Status, o.Detail)
				}
			}
			if got := text(h, "/a"); got != "MB:0= 100;1= 100 L3:0=3c000;1=3c000" {
				t.Error(got)
			}
			if o := h.j.Wrap(a).Apply(ctx, class("/a", 0, 0)); o.Status != action.Done || len(h.fs.Groups()) != 0 {
				t.Errorf("give back: %s: %s", o.Status, o.Detail)
			}
		})
	}
}

// Another process changes our group's limits: reported, not fought; the group is removed
// all the same.
func TestDrift(t *testing.T) {
	h := boot(t)
	a := h.open()
	defer h.close()
	apply := h.j.Wrap(a)
	apply.Apply(ctx, class("/a", 0.2, 0))
	if err := h.fs.Write(resctrl.ControlName("/a")+"/schemata", "L3:0=1"); err != nil {
		t.Fatal(err)
	}
	if o := apply.Apply(ctx, class("/a", 0.2, 0)); o.Status != action.Drifted || !strings.HasSuffix(text(h, "/a"), "0=00001;1=3c000") {
		t.Errorf("%s: %s; %s", o.Status, o.Detail, text(h, "/a"))
	}
	if o := apply.Apply(ctx, class("/a", 0, 0)); o.Status != action.Done || len(h.fs.Groups()) != 0 {
		t.Errorf("%s: %s", o.Status, o.Detail)
	}
	if _, err := h.j.Restore(ctx, a); err != nil || len(h.j.Outstanding()) != 0 {
		t.Error(err)
	}
}

func TestWithoutResctrl(t *testing.T) {
	h := boot(t)
	h.open()
	defer h.close()
	a := newApplier(h.root, Config{}, func() (resctrl.Acts, bool, error) { return nil, false, resctrl.ErrNotMounted }, nil, errors.New("none"))
	if o := h.j.Wrap(a).Apply(ctx, class("/a", 0.2, 0)); o.Status != action.Refused || !strings.Contains(o.Detail, "mount -t resctrl resctrl") {
		t.Errorf("%s: %s", o.Status, o.Detail)
	}
	if _, err := New(kernel.LiveToken{}, Config{}, nil, nil); !errors.Is(err, kernel.ErrNotSupported) {
		t.Error("acts without the kernel's token")
	}
	if err := a.Write(journal.Permit{}, Setting("/a", File), made); !errors.Is(err, journal.ErrRefused) {
		t.Error("acts without a permit")
	}
	for _, s := range []journal.Setting{{Cgroup: "resctrl theirs", File: File}, {Cgroup: "/a", File: "cpuset.cpus"}, {Cgroup: "resctrl ..", File: File}} {
		if _, ok := GroupOf(s); ok {
			t.Errorf("%v is taken for ours", s)
		}
	}
}

// crash is what the file system panics with at its stop.
type crash struct{}

func until(f func()) (crashed bool) {
	defer func() {
		if r := recover(); r != nil {
			if _, ok := r.(crash); !ok {
				panic(r)
			}
			crashed = true
		}
	}()
	f()
	return false
}

// at stops dead before or after the n-th operation.
func at(h *host, stop int) {
	n := 0
	tick := func() {
		if n++; n == stop {
			panic(crash{})
		}
	}
	h.fs.Before = func(string, string) error { tick(); return nil }
	h.fs.After = func(string, string) { tick() }
}

// TestEveryCrash stops at every operation of a script, before and after its effect, and
// then at every operation of the restore that follows. In the end nothing of ours is
// left, all tasks are where they were, and the other process's group is as it was.
func TestEveryCrash(t *testing.T) {
	script := []action.Step{class("/a", 0.2, 0.5), class("/b", 0.3, 0), class("/a", 0.4, 0.5), class("/a", 0, 0), class("/a", 0.2, 0.5)}
	points, within := 0, 0
	for stop := 1; ; stop++ {
		crashed := false
		for again := 1; ; again++ {
			h := boot(t)
			h.theirs2()
			a := h.open()
			at(h, stop)
			crashed = until(func() {
				for _, s := range script {
					if o := h.j.Wrap(a).Apply(ctx, s); o.Status != action.Done {
						t.Fatalf("%v: %s %s", s, o.Status, o.Detail)
					}
				}
			})
			h.close()
			if !crashed {
				break
			}
			a = h.open()
			if stop%5 != 0 { // every fifth, within its restore as well
				h.fs.Before, h.fs.After = nil, nil
				h.check(a, fmt.Sprintf("stop %d", stop))
				h.close()
				points++
				break
			}
			at(h, again)
			if inRestore := until(func() { h.check(a, fmt.Sprintf("stop %d", stop)) }); !inRestore {
				h.close()
				points++
				break
			}
			within++
			h.close()
			h.fs.Before, h.fs.After = nil, nil
			a = h.open()
			h.check(a, fmt.Sprintf("stop %d, then %d", stop, again))
			h.close()
		}
		if !crashed {
			break
		}
	}
	t.Logf("%d crash points, %d within their restores", points, within)
	if points < 50 {
		t.Error("too few")
	}
}

func (h *host) theirs2() {
	if err := errors.Join(h.fs.Make("theirs"), h.fs.Write("theirs/tasks", "99")); err != nil {
		h.t.Fatal(err)
	}
}

func (h *host) check(a *Applier, what string) {
	h.t.Helper()
	got, err := h.j.Restore(ctx, a)
	groups := strings.Join(h.fs.Groups(), " ")
	if err != nil || groups != "theirs" || h.fs.Group(10) != "" || h.fs.Group(20) != "" || h.fs.Group(99) != "theirs" || len(h.j.Outstanding()) != 0 {
		h.t.Fatalf("%s: %v, %v; groups %s; outstanding %v", what, got, err, groups, h.j.Outstanding())
	}
	for _, r := range got {
		if r.Result == journal.Left {
			h.t.Fatalf("%s: %v is taken for another process's change", what, r)
		}
	}
}
