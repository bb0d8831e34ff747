// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"homenode/internal/kernel/kerneltest"
	"homenode/internal/kernel/unix"
)

// TestNumaMapsHangs: processes whose numa_maps does not answer cost a round its limit,
// once, and the figure is unknown; one that answers again is read again.
func TestNumaMapsHangs(t *testing.T) {
	kerneltest.InMemory(t)
	root := fakeV2(t)
	kerneltest.Remove(t, root, top+"/demo/a/memory.numa_stat")
	kerneltest.Write(t, root, kerneltest.Files{top + "/demo/a/cgroup.procs": "10\n", "/proc/10/numa_maps": "7f0000000000 default anon=3 N0=3 kernelpagesize_kB=4\n"})
	defer func() { unix.Interfere = nil }()
	synctest.Test(t, func(t *testing.T) {
		r, clock := newFake(t, root, Config{Roots: []string{"/demo/*"}})
		let, hangs := make(chan bool), atomic.Int64{}
		unix.Interfere = func(path string) {
			if strings.HasSuffix(path, "/10/numa_maps") {
				hangs.Add(1)
				<-let
			}
		}
		for round := range 5 {
			began := time.Now()
			w := read(t, r)
			took := time.Since(began)
			if a := w.Workloads[0]; a.AnonByNode[0].Known() || !strings.Contains(a.AnonByNode[0].From, "no answer") || !a.Tasks.Known() {
				t.Errorf("round %d: %+v", round, a.AnonByNode)
			}
			if limit := defaultMaps.Process.Time; round == 0 && took > 2*limit || round > 0 && took > 0 {
				t.Errorf("round %d took %v", round, took)
			}
			clock.at = clock.at.Add(10 * time.Second)
		}
		if hangs.Load() != 1 {
			t.Errorf("it was asked %d times", hangs.Load())
		}
		unix.Interfere = nil
		close(let)
		synctest.Wait()
		read(t, r)
		if a := read(t, r).Workloads[0]; a.AnonByNode[0].Or(0) != 3*4096 {
			t.Errorf("once it answers: %v", a.AnonByNode)
		}
	})
}

// Many hanging readings take no more than unix.MostHung threads.
func TestManyHang(t *testing.T) {
	kerneltest.InMemory(t)
	files := kerneltest.Files{}
	for pid := range 100 {
		files[fmt.Sprintf("/proc/%d/numa_maps", pid)] = "1000 default anon=1 N0=1\n"
	}
	root := kerneltest.Tree(t, files)
	defer func() { unix.Interfere = nil }()
	synctest.Test(t, func(t *testing.T) {
		let := make(chan bool)
		hung := atomic.Int64{}
		unix.Interfere = func(path string) {
			hung.Add(1)
			<-let
		}
		var p patient
		began := time.Now()
		for pid := range 100 {
			if err := p.numaMaps(pid, root.Path(fmt.Sprintf("/proc/%d/numa_maps", pid)), nil, time.Second, nil); err == nil {
				t.Errorf("process %d answered", pid)
			}
		}
		if took := time.Since(began); hung.Load() != unix.MostHung || took != unix.MostHung*time.Second {
			t.Errorf("%d hang, after %v", hung.Load(), took)
		}
		unix.Interfere = nil
		close(let)
		synctest.Wait()
	})
}
