// SPDX-License-Identifier: Apache-2.0

package owner

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"homenode/internal/action"
	"homenode/internal/journal"
	"homenode/internal/kernel"
	"homenode/internal/kernel/cgroup"
	"homenode/internal/kernel/kerneltest"
)

var ctx = context.Background()

// named is an owner that reports its name.
type named struct {
	name string
	kind journal.Kind
}

func (n named) Names(s journal.Setting) bool { return s.Kind() == n.kind }
func (n named) Plan(context.Context, action.Step) ([]journal.Change, error) {
	return []journal.Change{{New: n.name}}, nil
}
func (n named) Read(journal.Setting) (journal.Current, error) {
	return journal.Current{Value: n.name}, nil
}
func (n named) Same(_ journal.Setting, current, _ string) bool { return current == n.name }
func (n named) Write(journal.Permit, journal.Setting, string) error {
	return errors.New(n.name)
}
func (n named) Equivalent(journal.Setting, string) (string, error) { return n.name, nil }
func (n named) Move(_ context.Context, _ journal.Permit, step action.Step) action.Outcome {
	return action.Outcome{Step: step, Status: action.Done, Detail: n.name}
}

// telling can report what overrules a setting, too.
type telling struct{ named }

func (t telling) Overrules(journal.Setting, string) string { return t.name + " is overruled" }

func boot(t *testing.T) *Router {
	t.Helper()
	const stat = " S 1 20 20 0 -1 0 0 0 0 0 1 1 0 0 20 0 1 0 9 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 17 2 0 0 0 0 0\n"
	root := kerneltest.Tree(t, kerneltest.Files{
		"/proc/self/mountinfo":                     "41 31 0:38 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
		"/sys/fs/cgroup/cgroup.controllers":        "cpuset cpu\n",
		"/sys/fs/cgroup/demo/a/cgroup.procs":       "10\n",
		"/sys/fs/cgroup/default/shim/cgroup.procs": "20\n",
		"/proc/10/stat":                            "10 (sleep)" + stat,
		"/proc/20/stat":                            "20 (containerd-shim)" + stat,
		"/proc/20/status":                          "Uid:\t0\t0\t0\t0\n",
		"/proc/20/cmdline":                         "/usr/bin/containerd-shim-runc-v2\x00-namespace\x00default\x00",
	})
	r, err := newRouter(root, RouterConfig{
		Direct: []string{cgroup.Libvirt}, Cgroups: named{name: "cgroups"},
		Managers: map[string]Manager{
			cgroup.Systemd: telling{named{"units", journal.OfUnit}}, cgroup.Containerd: named{"containers", journal.OfContainer},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestWhoActs(t *testing.T) {
	r := boot(t)
	for _, c := range []struct{ workload, who, why string }{
		{"/demo/a", "cgroups", ""},
		{"/system.slice/a.service", "units", ""},
		{"/system.slice/a.service/below", "units", ""}, // which refuses it
		{"/default/shim", "containers", ""},
		{"/system.slice/containerd-lent.scope", "containers", ""},
		{"/machine.slice/machine-qemu.scope", "cgroups", ""}, // direct_owners
		{"/kubepods.slice/pod1/cri-containerd-1.scope", "", "owned by kubelet"},
		{"/kubepods/besteffort/pod1/1", "", "left alone"},
		{"/system.slice/docker-1.scope", "", "owned by docker, which homenode cannot reach here"},
		{"/user.slice/libpod-1.scope", "", "owned by podman"},
	} {
		step := action.Step{Kind: action.SetCPUs, Workload: c.workload}
		changes, err := r.Plan(ctx, step)
		move := r.Move(ctx, journal.Permit{}, step)
		if c.who != "" {
			if err != nil || changes[0].New != c.who || move.Detail != c.who {
				t.Errorf("%s: %v, %v, %s; want %s", c.workload, changes, err, move.Detail, c.who)
			}
			continue
		}
		if !errors.Is(err, journal.ErrRefused) || !strings.Contains(err.Error(), c.why) || move.Status != action.Refused || move.Detail != err.Error() {
			t.Errorf("%s: %v; %+v", c.workload, err, move)
		}
		if o := (journal.DryRun{Owner: r}).Apply(ctx, step); o.Status != action.Refused {
			t.Errorf("%s: %+v", c.workload, o)
		}
	}
}

// A setting goes to its owner by its name alone. A setting of an unknown kind is an error
// that ends no record.
func TestWhoseSetting(t *testing.T) {
	r := boot(t)
	for _, c := range []struct{ name, who string }{
		{"/demo/a", "cgroups"}, {"/system.slice/a.service", "cgroups"}, {"unit a.service", "units"}, {"container docker/1", "containers"},
		{"resctrl a", ""}, {"thread 12", ""}, {"", ""}, {"units a", ""},
	} {
		s := journal.Setting{Cgroup: c.name, File: "x"}
		cur, err := r.Read(s)
		equivalent, err2 := r.Equivalent(s, "")
		wrote := r.Write(journal.Permit{}, s, "")
		if c.who != "" {
			if err != nil || err2 != nil || cur.Value != c.who || equivalent != c.who || fmt.Sprint(wrote) != c.who || !r.Same(s, c.who, "") {
				t.Errorf("%s: %v, %v, %q, %v, %v", c.name, cur, err, equivalent, err2, wrote)
			}
			continue
		}
		for _, err := range []error{err, err2, wrote} {
			if err == nil || errors.Is(err, kernel.ErrGone) || errors.Is(err, kernel.ErrNotSupported) {
				t.Errorf("%s: %v", c.name, err)
			}
		}
		if r.Same(s, "", "") {
			t.Errorf("%s: same", c.name)
		}
	}
	for name, want := range map[string]string{"unit a.service": "units is overruled", "/demo/a": "", "container docker/1": "", "resctrl a": ""} {
		if got := r.Overrules(journal.Setting{Cgroup: name}, ""); got != want {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func TestLiveOnly(t *testing.T) {
	if _, err := NewRouter(kernel.LiveToken{}, RouterConfig{}); !errors.Is(err, kernel.ErrNotSupported) {
		t.Error(err)
	}
}
