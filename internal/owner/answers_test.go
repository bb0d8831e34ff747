// SPDX-License-Identifier: Apache-2.0

package owner

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	sys "golang.org/x/sys/unix"

	"homenode/internal/action"
	"homenode/internal/kernel"
	"homenode/internal/kernel/unix"
	"homenode/internal/set"
)

// lockMap makes reading a process's pagemap hang, until the returned function is called.
func lockMap(t *testing.T, root kernel.Root, pid string) (unlock func()) {
	t.Helper()
	path := root.Path("/proc/" + pid + "/pagemap")
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), sys.Mkfifo(path, 0o600)); err != nil {
		t.Fatal(err)
	}
	return func() {
		if f, err := os.OpenFile(path, os.O_WRONLY, 0); err == nil {
			f.Close()
		}
	}
}

// The nodes of a workload are not set while the memory map of one of its processes is
// locked, whoever its manager is. Its CPUs are, and so are the nodes of others.
func TestNodesOfALockedMap(t *testing.T) {
	for _, workload := range []string{"/demo/a", "/default/shim"} {
		r := boot(t)
		r.maps.limit = 20 * time.Millisecond
		pid := map[string]string{"/demo/a": "10", "/default/shim": "20"}[workload]
		unlock := lockMap(t, r.maps.root, pid)
		mems := action.Step{Kind: action.SetMems, Workload: workload, Nodes: set.FromNodes(0)}
		for range 2 * unix.MostHung { // it is asked once
			_, err := r.Plan(ctx, mems)
			if !errors.Is(err, unix.ErrNoAnswer) || !strings.Contains(err.Error(), workload) {
				t.Fatalf("%s: %v", workload, err)
			}
		}
		other := map[string]string{"/demo/a": "/default/shim", "/default/shim": "/demo/a"}[workload]
		for _, step := range []action.Step{{Kind: action.SetCPUs, Workload: workload}, {Kind: action.SetMems, Workload: other}} {
			if _, err := r.Plan(ctx, step); err != nil {
				t.Errorf("%s of %s: %v", step.Kind, step.Workload, err)
			}
		}
		unlock()
		r.maps.limit = time.Minute
		os.Remove(r.maps.root.Path("/proc/" + pid + "/pagemap"))
		for begun := time.Now(); ; time.Sleep(time.Millisecond) {
			if _, err := r.Plan(ctx, mems); err == nil {
				break
			} else if time.Since(begun) > time.Minute {
				t.Fatalf("%s: its map is free: %v", workload, err)
			}
		}
	}
}
