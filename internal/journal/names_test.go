// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"fmt"
	"strings"
	"testing"

	"homenode/internal/action"
)

func TestNames(t *testing.T) {
	for _, c := range []struct {
		cgroup string
		kind   Kind
		name   string
	}{
		{"/demo/a", OfCgroup, "/demo/a"}, {"/unit x", OfCgroup, "/unit x"}, {"thread 12", OfThread, "12"}, {`unit a\x20b@c.service`, OfUnit, `a\x20b@c.service`},
		{"container containerd/default/own", OfContainer, "containerd/default/own"}, {"resctrl homenode-1", OfResctrl, "homenode-1"},
		{"cgroup x", "", "cgroup x"}, {"", "", ""}, {"units", "", "units"},
	} {
		s := Setting{Cgroup: c.cgroup, File: "f"}
		if s.Kind() != c.kind || s.Name() != c.name || c.kind != "" && c.kind != OfCgroup && Named(c.kind, c.name, "f") != s {
			t.Errorf("%q: %q %q", c.cgroup, s.Kind(), s.Name())
		}
	}
}

// A setting requested from an owner is ours in the workload's cgroup.
func TestOursThroughOwners(t *testing.T) {
	w := newWorld()
	unit := Named(OfUnit, "a.service", "AllowedCPUs")
	w.ids[unit.Cgroup], w.files[unit] = 1, ""
	j := mustOpen(t, w)
	change := func(value string) error {
		return j.change(w, "/system.slice/a.service", Change{Setting: unit, New: value})
	}
	ours := func(value string) bool { return j.Ours("/system.slice/a.service", "cpuset.cpus", value+"\n") }
	if ours("2-3") {
		t.Error("ours before")
	}
	if err := change("2-3"); err != nil || !ours("2-3") || ours("2") || j.Ours("/system.slice/a.service", "cpuset.mems", "2-3") || j.Ours("a.service", "AllowedCPUs", "2-3") {
		t.Errorf("%v", err)
	}
	if err := change("1"); err != nil || ours("2-3") || !ours("1") {
		t.Errorf("%v", err)
	}
	if _, err := j.RestoreWorkload(ctx, w, "/system.slice/a.service"); err != nil || ours("1") || w.files[unit] != "" {
		t.Errorf("%v, %v", err, w.files)
	}
}

// overruled is a world where another process wrote to a cgroup of a unit.
type overruled struct {
	*world
	by string
}

func (o overruled) Overrules(Setting, string) string { return o.by }

// Another value in force over a setting of ours is drift, and does not keep the setting
// from being put back.
func TestOverruled(t *testing.T) {
	w := newWorld()
	o := overruled{world: w, by: "its cgroup has 5"}
	j := mustOpen(t, w)
	a := j.Wrap(&o)
	if out := a.Apply(ctx, cpus("/demo/a", 1)); out.Status != action.Done {
		t.Errorf("what homenode did not set: %+v", out)
	}
	if out := a.Apply(ctx, cpus("/demo/a", 2)); out.Status != action.Drifted || !strings.Contains(out.Detail, "its cgroup has 5") || w.files[cpusA] != "1" {
		t.Errorf("%+v", out)
	}
	if _, err := j.Restore(ctx, &o); err != nil || w.files[subtreeDemo] != "-" {
		t.Errorf("%v, %v", err, w.files)
	}
}

// An owner that does not know whether a write is done keeps it on record, whatever the
// value is.
func TestUnsureStaysOnRecord(t *testing.T) {
	for _, done := range []bool{false, true} {
		w := newWorld()
		unit := Named(OfUnit, "a.service", "AllowedCPUs")
		w.ids[unit.Cgroup], w.files[unit] = 1, "0-3"
		w.writeErr = func(s Setting, value string) error {
			if done {
				w.files[s] = value
			}
			return fmt.Errorf("no answer (%w)", ErrUnsure)
		}
		j := mustOpen(t, w)
		if err := j.change(w, "/x", Change{Setting: unit, New: "1"}); err == nil || len(j.Outstanding()) != 1 {
			t.Errorf("%v, %v", err, j.Outstanding())
		}
		w.writeErr = nil
		j = mustOpen(t, w) // and after a crash
		got, err := j.Restore(ctx, w)
		if err != nil || len(got) != 1 || got[0].Result == Left || w.files[unit] != "0-3" {
			t.Errorf("done %v: %v, %v, %v", done, got, err, w.files)
		}
	}
}

// A homenode without support for units must not end their records.
func TestOlderRefuses(t *testing.T) {
	w := newWorld()
	mustOpen(t, w)
	if !strings.Contains(string(w.log), `"version":4`) {
		t.Errorf("%s", w.log)
	}
	line, _ := record{Kind: kindBoot, Version: version + 1, Boot: boot}.line(boot)
	w.log = line
	if _, err := open(w, boot); err == nil || !strings.Contains(err.Error(), "newer homenode") {
		t.Error(err)
	}
	if w.log, _ = (record{Kind: kindBoot, Version: version - 1, Boot: boot}).line(boot); w.log == nil {
		t.Fatal("no line")
	}
	if _, err := open(w, boot); err == nil || !strings.Contains(err.Error(), "older homenode") {
		t.Error(err)
	}
}
