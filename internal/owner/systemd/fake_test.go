// SPDX-License-Identifier: Apache-2.0

package systemd

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/godbus/dbus/v5"

	"homenode/internal/kernel/kerneltest"
	"homenode/internal/kernel/unix"
)

const top = "/sys/fs/cgroup"

// crash is what a fake panics with at its stop.
type crash struct{}

// fakeSystemd does with units and their cgroups' files what PID 1 does. It stops dead at
// the stop-th operation, before or after its effect.
type fakeSystemd struct {
	t           *testing.T
	root        unix.Root
	units       map[string]*unitState
	ticks, stop int
	asked       []string
	refuse      func(question string) error
	lazy        bool // takes a property and does not write to the cgroup
}

func (f *fakeSystemd) tick() {
	if f.ticks++; f.ticks == f.stop {
		panic(crash{})
	}
}

func (f *fakeSystemd) ask(question string) error {
	f.asked = append(f.asked, question)
	if f.refuse != nil {
		return f.refuse(question)
	}
	return nil
}

func (f *fakeSystemd) Unit(_ context.Context, name string) (unitState, error) {
	f.tick()
	if err := f.ask("get " + name); err != nil {
		return unitState{}, err
	}
	if u, ok := f.units[name]; ok {
		c := *u
		c.DropIns = slices.Clone(u.DropIns)
		return c, nil
	}
	return unitState{Load: "not-found"}, nil
}

func (f *fakeSystemd) Set(_ context.Context, name, property string, mask []byte) error {
	f.tick()
	list, err := Decode(property, mask)
	if err != nil {
		f.t.Fatal(err)
	}
	if err := f.ask("set " + name + " " + property + "=" + list); err != nil {
		return err
	}
	u, ok := f.units[name]
	if !ok {
		return dbus.Error{Name: service + ".NoSuchUnit", Body: []any{"Unit " + name + " not found."}}
	}
	file := "cpuset.cpus"
	if property == Mems {
		file, u.Mems = "cpuset.mems", mask
	} else {
		u.CPUs = mask
	}
	d := dropIn(name, property, u.Transient)
	if !slices.Contains(u.DropIns, d) {
		u.DropIns = append(u.DropIns, d)
	}
	files := kerneltest.Files{d: property + "=\n" + property + "=" + list + "\n"}
	if u.Cgroup != "" && !f.lazy && list != "" { // what is unset is not written
		files[top+u.Cgroup+"/"+file] = list + "\n"
	}
	kerneltest.Write(f.t, f.root, files)
	f.tick()
	return nil
}

func (f *fakeSystemd) empty(file, property string) error {
	f.tick()
	err := emptyDropIn(file, property)
	f.tick()
	return err
}

// boot makes systemd with some units, and an owner that asks it.
func boot(t *testing.T) (*Applier, *fakeSystemd) {
	t.Helper()
	files := kerneltest.Files{
		"/proc/self/mountinfo":                               "41 31 0:38 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
		top + "/cgroup.controllers":                          "cpuset cpu memory\n",
		top + "/cpuset.cpus.effective":                       "0-7\n",
		"/sys/devices/system/cpu/possible":                   "0-15\n",
		"/sys/devices/system/node/possible":                  "0-1\n",
		top + "/cpuset.mems.effective":                       "0-1\n",
		"/etc/systemd/system/own.service":                    "[Service]\nAllowedCPUs=0-5\n",
		"/lib/systemd/system/plain.service":                  "[Service]\nExecStart=/bin/true\n",
		"/run/systemd/transient/brief.service":               "[Service]\n",
		top + "/system.slice/busy/cgroup.procs":              "",
		"/lib/systemd/system/parent.service":                 "[Service]\nDelegate=yes\n",
		"/lib/systemd/system/stopped.service":                "[Service]\n",
		"/lib/systemd/system/elsewhere.service":              "[Service]\n",
		"/lib/systemd/system/cpu.service":                    "[Service]\n",
		top + "/system.slice/memory.numa_stat":               "anon N0=0 N1=0\nfile N0=0 N1=0\n",
		top + "/system.slice/a.service/x/y":                  "",
		top + "/system.slice/cpuset.cpus":                    "\n",
		"/proc/10/stat":                                      "10 (x) S 1 10 10 0 -1 0 0 0 0 0 1 1 0 0 20 0 1 0 9 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 17 2 0 0 0 0 0\n",
		top + "/system.slice/parent.service/in/cgroup.procs": "10\n",
	}
	f := &fakeSystemd{t: t, units: map[string]*unitState{}}
	for name, u := range map[string]unitState{
		"own.service":       {Fragment: "/etc/systemd/system/own.service", CPUs: []byte{0x3f}},
		"plain.service":     {Fragment: "/lib/systemd/system/plain.service"},
		"brief.service":     {Fragment: "/run/systemd/transient/brief.service", Transient: true, Mems: []byte{0x3}},
		"parent.service":    {Fragment: "/lib/systemd/system/parent.service"},
		"stopped.service":   {Fragment: "/lib/systemd/system/stopped.service"},
		"elsewhere.service": {Fragment: "/lib/systemd/system/elsewhere.service"},
	} {
		u.Load, u.Cgroup = "loaded", "/system.slice/"+name
		for file, mask := range map[string][]byte{"cpuset.cpus": u.CPUs, "cpuset.mems": u.Mems} {
			list, _ := Decode(CPUs, mask)
			files[top+u.Cgroup+"/"+file] = list + "\n"
		}
		files[top+u.Cgroup+"/cgroup.procs"] = "10\n"
		f.units[name] = &u
	}
	f.units["stopped.service"].Cgroup = ""
	f.units["elsewhere.service"].Cgroup = "/other.slice/elsewhere.service"
	f.root = kerneltest.Tree(t, files)
	a, err := newApplier(f.root, f, Config{})
	if err != nil {
		t.Fatal(err)
	}
	a.empty = f.empty
	return a, f
}

// state is all of systemd that matters, as text.
func (f *fakeSystemd) state() map[string]string {
	all := map[string]string{}
	for name, u := range f.units {
		cpus, _ := Decode(CPUs, u.CPUs)
		mems, _ := Decode(Mems, u.Mems)
		all[name] = cpus + " " + mems
		for file, everything := range map[string]string{"cpuset.cpus": "0-15", "cpuset.mems": "0-1"} {
			data, _ := os.ReadFile(f.root.Path(top + "/system.slice/" + name + "/" + file))
			if text := strings.TrimSpace(string(data)); text != everything && text != "" {
				all[file+" of "+name] = text
			}
		}
		for _, property := range []string{CPUs, Mems} {
			data, err := os.ReadFile(f.root.Path(dropIn(name, property, u.Transient)))
			if err == nil && !strings.HasPrefix(string(data), "# homenode") {
				all[filepath.Base(dropIn(name, property, u.Transient))+" of "+name] = strings.Join(strings.Fields(string(data)), " ")
			}
		}
	}
	return all
}
