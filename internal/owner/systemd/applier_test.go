// SPDX-License-Identifier: Apache-2.0

package systemd

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/godbus/dbus/v5"

	"homenode/internal/action"
	"homenode/internal/journal"
	"homenode/internal/kernel"
	"homenode/internal/kernel/kerneltest"
	"homenode/internal/owner/ownertest"
	"homenode/internal/set"
)

var (
	ctx  = context.Background()
	open = ownertest.Open
)

func cpus(unit string, ids ...int) action.Step {
	return action.Step{Kind: action.SetCPUs, Workload: "/system.slice/" + unit, CPUs: set.FromCPUs(ids...)}
}

func mems(unit string, ids ...int) action.Step {
	return action.Step{Kind: action.SetMems, Workload: "/system.slice/" + unit, Nodes: set.FromNodes(ids...)}
}

func TestUnitOf(t *testing.T) {
	for _, c := range []struct{ id, want, why string }{
		{"/system.slice/ssh.service", "ssh.service", ""},
		{"/system.slice/system-getty.slice/getty@tty1.service", "getty@tty1.service", ""},
		{`/system.slice/system-a\x2db.slice/a\x2db@c\x2fd.service`, `a\x2db@c\x2fd.service`, ""},
		{"/system.slice/_cpu.service", "cpu.service", ""},
		{"/user.slice/user-1000.slice/session-3.scope", "session-3.scope", ""},
		{"/system.slice", "system.slice", ""},
		{"/init.scope", "", "PID 1 itself"},
		{"/system.slice/a.service/payload", "", "below unit a.service"},
		{"/user.slice/user-1000.slice/user@1000.service/app.slice/x.service", "", "a user's own systemd, user@1000.service"},
		{"/user.slice/user-1000.slice/user@1000.service/init.scope", "", "a user's own systemd"},
		{"/machine/x.service", "", "below machine, which is no unit"},
		{"/system.slice/payload", "", "no unit's"},
		{"/system.slice/a b.service", "", "no unit's"},
		{"/system.slice/.service", "", "no unit's"},
		{"/system.slice/../x.service", "", "want the path"},
		{"/", "", "want the path"},
		{"", "", "want the path"},
	} {
		got, err := UnitOf(c.id)
		if got != c.want || (err == nil) != (c.why == "") || err != nil && (!strings.Contains(err.Error(), c.why) || !errors.Is(err, journal.ErrRefused)) {
			t.Errorf("%s: %q, %v; want %q %s", c.id, got, err, c.want, c.why)
		}
	}
}

func TestMask(t *testing.T) {
	for list, mask := range map[string][]byte{"": {}, "0": {1}, "2-3": {0x0c}, "0,8-9": {1, 3}, "15": {0, 0x80}} {
		got, err := encode(CPUs, list)
		if err != nil || !slices.Equal(got, mask) {
			t.Errorf("%q: %v, %v", list, got, err)
		}
		if back, err := Decode(CPUs, append(slices.Clone(mask), 0, 0)); err != nil || back != list {
			t.Errorf("%v: %q, %v", mask, back, err)
		}
	}
	if _, err := Decode(Mems, append(make([]byte, 128), 1)); !errors.Is(err, kernel.ErrMalformed) {
		t.Errorf("node 1024: %v", err)
	}
}

func FuzzUnitOf(f *testing.F) {
	for _, s := range []string{"/system.slice/a.service", "/a.slice/_b.scope/c", `/\x2d.service`, "//", "/user@.service/"} {
		f.Add(s, []byte(s))
	}
	f.Fuzz(func(t *testing.T, id string, mask []byte) {
		if name, err := UnitOf(id); err != nil && name != "" || err == nil && (!isUnit(name) || kindOf(name) == "") {
			t.Errorf("%q: %q, %v", id, name, err)
		}
		list, err := Decode(CPUs, mask)
		if err != nil {
			return
		}
		again, err := encode(CPUs, list)
		if back, bad := Decode(CPUs, again); err != nil || bad != nil || back != list {
			t.Errorf("%v: %q, %v, %v, %q", mask, list, again, err, back)
		}
	})
}

// Units are bound by properties, nodes after CPUs, and are as before afterwards: unset
// without a file left behind, or set to the earlier value.
func TestBindAndRestore(t *testing.T) {
	a, f := boot(t)
	before := f.state()
	dir := filepath.Join(t.TempDir(), "journal")
	j := open(t, dir)
	apply := j.Wrap(a)
	for _, step := range []action.Step{cpus("plain.service", 2, 3), mems("plain.service", 1), cpus("own.service", 0), mems("brief.service", 1), cpus("plain.service", 2, 3)} {
		if o := apply.Apply(ctx, step); o.Status != action.Done {
			t.Fatalf("%s %s: %s: %s", step.Kind, step.Workload, o.Status, o.Detail)
		}
	}
	sets := slices.DeleteFunc(slices.Clone(f.asked), func(q string) bool { return !strings.HasPrefix(q, "set") })
	if want := []string{"set plain.service AllowedCPUs=2-3", "set plain.service AllowedMemoryNodes=1", "set own.service AllowedCPUs=0", "set brief.service AllowedMemoryNodes=1"}; !slices.Equal(sets, want) {
		t.Errorf("asked for %q, want %q", sets, want)
	}
	for _, c := range []struct {
		file, value string
		want        bool
	}{{"cpuset.cpus", "2-3\n", true}, {"cpuset.mems", "1", true}, {"cpuset.cpus", "2", false}, {"cpuset.mems", "", false}} {
		if got := j.Ours("/system.slice/plain.service", c.file, c.value); got != c.want {
			t.Errorf("ours %s %q: %v", c.file, c.value, got)
		}
	}
	if o := apply.Apply(ctx, action.Step{Kind: action.Restore, Workload: "/system.slice/brief.service"}); o.Status != action.Done {
		t.Errorf("%+v", o)
	}
	if j.Ours("/system.slice/brief.service", "cpuset.mems", "1") {
		t.Error("what was put back is ours")
	}
	got, err := j.Restore(ctx, a)
	after := f.state()
	// what the unit's own file sets can be restored only by a drop-in with the same value
	if s := after["50-AllowedCPUs.conf of own.service"]; s != "AllowedCPUs= AllowedCPUs=0-5" {
		t.Errorf("the drop-in of own.service: %q", s)
	}
	delete(after, "50-AllowedCPUs.conf of own.service")
	s := after["50-AllowedMemoryNodes.conf of brief.service"]
	delete(after, "50-AllowedMemoryNodes.conf of brief.service")
	if err != nil || len(got) != 3 || s != "AllowedMemoryNodes= AllowedMemoryNodes=0-1" || !maps.Equal(after, before) {
		t.Errorf("%v, %v, %q; %v, was %v", got, err, s, after, before)
	}
}

func TestRefusals(t *testing.T) {
	a, f := boot(t)
	apply := open(t, filepath.Join(t.TempDir(), "journal")).Wrap(a)
	kerneltest.Write(t, f.root, kerneltest.Files{top + "/system.slice/own.service/memory.numa_stat": fmt.Sprintf("anon N0=0 N1=%d\nfile_mapped N0=0 N1=%d\n", 40<<20, 40<<20)})
	denied := dbus.Error{Name: "org.freedesktop.DBus.Error.InteractiveAuthorizationRequired", Body: []any{"Interactive authentication required."}}
	for _, c := range []struct {
		step   action.Step
		answer error
		status action.Status
		why    string
	}{
		{cpus("parent.service", 1), nil, action.Refused, "processes of /system.slice/parent.service/in, below it"},
		{cpus("stopped.service", 1), nil, action.Gone, "it runs nothing now"},
		{cpus("elsewhere.service", 1), nil, action.Refused, "its cgroup is /other.slice/elsewhere.service"},
		{cpus("missing.service", 1), nil, action.Gone, "systemd knows no such unit"},
		{cpus("plain.service", 9), nil, action.Refused, "its slice has 0-7 only, not 9"},
		{cpus("plain.service"), nil, action.Refused, "an empty set"},
		{mems("own.service", 0), nil, action.Refused, "80 MiB of its memory are elsewhere"},
		{mems("own.service", 1), nil, action.Done, ""},
		{cpus("plain.service/below", 1), nil, action.Refused, "below unit plain.service"},
		{action.Step{Kind: action.Freeze, Workload: "/system.slice/plain.service"}, nil, action.Refused, "no property"},
		{cpus("plain.service", 1), denied, action.Refused, "a polkit rule"},
		{cpus("plain.service", 1), dbus.Error{Name: "org.freedesktop.DBus.Error.PropertyReadOnly"}, action.Refused, "systemd 244"},
		{cpus("plain.service", 1), fmt.Errorf("connect: %w", errNotSent), action.Failed, "no process listens"},
		{cpus("plain.service", 1), context.DeadlineExceeded, action.Failed, "has not answered in time"},
	} {
		f.refuse = func(string) error { return c.answer }
		o := apply.Apply(ctx, c.step)
		if o.Status != c.status || !strings.Contains(o.Detail, c.why) {
			t.Errorf("%s %s: %s: %s; want %s: %s", c.step.Kind, c.step.Workload, o.Status, o.Detail, c.status, c.why)
		}
	}
}

// cgroup v1: systemd has the property and would not write it anywhere.
func TestHybrid(t *testing.T) {
	a, _ := boot(t)
	a.layout.Cpuset.V2 = false
	if o := (journal.DryRun{Owner: a}).Apply(ctx, cpus("plain.service", 1)); o.Status != action.Refused || !strings.Contains(o.Detail, "cgroup v1") {
		t.Errorf("%+v", o)
	}
}

// Another process sets the property after us, or writes to the cgroup: drift, and left.
func TestDrift(t *testing.T) {
	a, f := boot(t)
	j := open(t, filepath.Join(t.TempDir(), "journal"))
	apply := j.Wrap(a)
	apply.Apply(ctx, cpus("plain.service", 1))
	apply.Apply(ctx, cpus("own.service", 1))
	if err := f.Set(ctx, "plain.service", CPUs, []byte{0xf0}); err != nil {
		t.Fatal(err)
	}
	if o := apply.Apply(ctx, cpus("plain.service", 2)); o.Status != action.Drifted || !strings.Contains(o.Detail, `it is "4-7", we left "1"`) {
		t.Errorf("set by an admin: %+v", o)
	}
	kerneltest.Write(t, f.root, kerneltest.Files{top + "/system.slice/own.service/cpuset.cpus": "5\n"})
	if o := apply.Apply(ctx, cpus("own.service", 2)); o.Status != action.Drifted || !strings.Contains(o.Detail, `cpuset.cpus of its cgroup is "5"`) {
		t.Errorf("written to: %+v", o)
	}
	got, err := j.Restore(ctx, a)
	if err != nil || len(got) != 2 || got[0].Result != journal.PutBack || got[1].Result != journal.Left || f.state()["plain.service"] != "4-7 " || f.state()["own.service"] != "0-5 " {
		t.Errorf("%v, %v; %v", got, err, f.state())
	}
}

// A unit that ends and is made anew at run time has lost what was set, and is another
// unit. Any other keeps it, and is put back also while it is stopped.
func TestRestarts(t *testing.T) {
	a, f := boot(t)
	j := open(t, filepath.Join(t.TempDir(), "journal"))
	apply := j.Wrap(a)
	apply.Apply(ctx, mems("brief.service", 1))
	apply.Apply(ctx, cpus("plain.service", 1))
	f.units["plain.service"].Cgroup = ""
	if err := os.Remove(f.root.Path("/run/systemd/transient/brief.service")); err != nil {
		t.Fatal(err)
	}
	kerneltest.Write(t, f.root, kerneltest.Files{"/run/other": "", "/run/systemd/transient/brief.service": "[Service]\n"})
	f.units["brief.service"].Mems = []byte{2}
	got, err := j.Restore(ctx, a)
	if err != nil || len(got) != 2 || got[0].Result != journal.PutBack || f.state()["plain.service"] != " " {
		t.Errorf("%v, %v; %v", got, err, f.state())
	}
	j2 := open(t, filepath.Join(t.TempDir(), "journal"))
	j2.Wrap(a).Apply(ctx, mems("brief.service", 0))
	delete(f.units, "brief.service")
	if got, err := j2.Restore(ctx, a); err != nil || len(got) != 1 || got[0].Result != journal.Vanished {
		t.Errorf("%v, %v", got, err)
	}
}

// A missing answer leaves the final value unknown, so the setting stays on record.
func TestUnsure(t *testing.T) {
	for _, late := range []bool{false, true} { // systemd does it, or never does
		a, f := boot(t)
		j := open(t, filepath.Join(t.TempDir(), "journal"))
		f.refuse = func(q string) error {
			if strings.HasPrefix(q, "set") {
				return context.DeadlineExceeded
			}
			return nil
		}
		if o := j.Wrap(a).Apply(ctx, cpus("plain.service", 1)); o.Status != action.Failed || len(j.Outstanding()) != 1 {
			t.Errorf("%+v; %v", o, j.Outstanding())
		}
		if f.refuse = nil; late {
			f.units["plain.service"].CPUs = []byte{2}
		}
		got, err := j.Restore(ctx, a)
		if err != nil || len(got) != 1 || got[0].Result == journal.Left || f.state()["plain.service"] != " " {
			t.Errorf("late %v: %v, %v; %v", late, got, err, f.state())
		}
	}
}

// systemd accepts the value, and the cgroup does not have it: that is reported, and put
// back.
func TestNotInForce(t *testing.T) {
	a, f := boot(t)
	j := open(t, filepath.Join(t.TempDir(), "journal"))
	f.lazy = true
	if o := j.Wrap(a).Apply(ctx, cpus("plain.service", 1)); o.Status != action.Failed || !strings.Contains(o.Detail, "systemd has taken it") {
		t.Errorf("%+v", o)
	}
	if _, err := j.Restore(ctx, a); err != nil || f.state()["plain.service"] != " " {
		t.Errorf("%v; %v", err, f.state())
	}
}

// Killed at any operation, and restored: as before. Killed while it was unset, everything
// may be set, by a drop-in that stays.
func TestKilledAnywhere(t *testing.T) {
	script := []action.Step{
		cpus("plain.service", 2, 3), mems("plain.service", 1), cpus("own.service", 0), {Kind: action.Restore, Workload: "/system.slice/plain.service"},
		cpus("plain.service", 1), mems("brief.service", 1),
	}
	n := 0
	for stop := 1; ; stop++ {
		a, f := boot(t)
		want := f.state()
		dir := filepath.Join(t.TempDir(), "journal")
		j := open(t, dir)
		f.stop = stop
		killed := killedIn(func() {
			for _, step := range script {
				if o := j.Wrap(a).Apply(ctx, step); o.Status != action.Done {
					t.Fatalf("%+v", o)
				}
			}
			if _, err := j.Restore(ctx, a); err != nil {
				t.Fatal(err)
			}
		})
		f.stop = 0
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
		j = open(t, dir)
		got, err := j.Restore(ctx, a)
		if again, bad := j.Restore(ctx, a); err != nil || bad != nil || len(again) != 0 {
			t.Fatalf("stop %d: %v, %v, %v, %v", stop, got, err, again, bad)
		}
		left := f.state()
		if strings.HasSuffix(left["plain.service"], " 0-1") || strings.HasPrefix(left["plain.service"], "0-15") {
			left["plain.service"] = " " // everything is as good as unset
		}
		maps.DeleteFunc(left, func(k, v string) bool { // drop-ins that mean what was before
			return strings.Contains(k, ".conf of") && slices.Contains([]string{"", "0-1", "0-15", "0-5"}, v[strings.LastIndex(v, "=")+1:])
		})
		if !maps.Equal(left, want) {
			t.Fatalf("stop %d: %v, want %v; restored %v", stop, left, want, got)
		}
		if n++; !killed {
			break
		}
	}
	if n < 30 {
		t.Errorf("only %d places", n)
	}
}

func killedIn(f func()) (killed bool) {
	defer func() {
		if r := recover(); r != nil {
			if _, ok := r.(crash); !ok {
				panic(r)
			}
			killed = true
		}
	}()
	f()
	return false
}
