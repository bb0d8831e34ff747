// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"path/filepath"
	"testing"

	"homenode/internal/action"
	"homenode/internal/journal"
	"homenode/internal/kernel/kerneltest"
	"homenode/internal/set"
)

// A cgroup's name may have any bytes but "/" and NUL. Each is bound, and put back by the
// homenode that starts after a kill.
func TestAnyNameIsBoundAndPutBack(t *testing.T) {
	kerneltest.InMemory(t)
	files, names := v1(), []string{"\xff\xfe", "é", "\xc3", "a\u2028b", "<&>", `a\x2d`, "\"'", " "}
	for b := 1; b < 256; b++ {
		if b != '/' {
			names = append(names, "a"+string([]byte{byte(b)}))
		}
	}
	c := top + "/cpuset"
	for _, name := range names {
		files[c+"/demo/"+name+"/cpuset.cpus"], files[c+"/demo/"+name+"/cpuset.mems"] = "0-7\n", "0-3\n"
	}
	a, k := boot(t, files, Config{})
	dir := filepath.Join(t.TempDir(), "journal")
	j, err := journal.Open(dir)
	if err != nil {
		t.Skipf("no journal on this host: %v", err)
	}
	for _, name := range names {
		step := action.Step{Kind: action.SetCPUs, Workload: "/demo/" + name, CPUs: set.FromCPUs(2, 3)}
		if o := j.Wrap(a).Apply(ctx, step); o.Status != action.Done || content(t, k, c+"/demo/"+name+"/cpuset.cpus") != "2-3" {
			t.Fatalf("%q: %+v", name, o)
		}
	}
	if err := j.Close(); err != nil { // as if it had been killed
		t.Fatal(err)
	}
	if j, err = journal.Open(dir); err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	got, err := j.Restore(ctx, a)
	if err != nil || len(got) != len(names) {
		t.Errorf("%d of %d: %v", len(got), len(names), err)
	}
	for _, name := range names {
		if now := content(t, k, c+"/demo/"+name+"/cpuset.cpus"); now != "0-7" {
			t.Errorf("%q is still %s", name, now)
		}
	}
}
