// SPDX-License-Identifier: Apache-2.0

package perf

import (
	"errors"
	"testing"

	sys "golang.org/x/sys/unix"

	"homenode/internal/kernel/unix"
	"homenode/internal/unit"
)

// threadPMU counts threads as fakeUncore counts CPUs.
type threadPMU struct{ *fakeUncore }

func (f threadPMU) OpenTask(attr *sys.PerfEventAttr, pid, cpu, _ int) (int, error) {
	if pid != 0 || cpu != -1 || attr.Bits&sys.PerfBitExcludeKernel == 0 {
		return 0, sys.EINVAL
	}
	if attr.Config == 0x0860 {
		return 0, sys.EACCES
	}
	f.next++
	f.attrs[f.next] = *attr
	return f.next, nil
}

func TestThreadCounts(t *testing.T) {
	f := threadPMU{newUncore()}
	g, problems := OpenThread(f, Lab().With(ThreadFields))
	if len(problems) != 1 || !errors.Is(problems[0], unix.ErrNotPermitted) {
		t.Errorf("problems: %v", problems)
	}
	g.Start()
	f.count[sys.PERF_COUNT_HW_INSTRUCTIONS] = [3]uint64{500, 10, 10}
	f.count[0x412e] = [3]uint64{100, 10, 5} // shared its counter half of the time
	f.count[0x10d1] = [3]uint64{7, 10, 0}   // never ran
	f.count[1<<24|0x860] = [3]uint64{0, 10, 10}
	g.Stop()
	want := ThreadCounts{Instructions: unit.Some(500.0), LLCMisses: unit.Some(200.0), UncoreWaits: unit.Some(0.0)}
	if got := g.Counts(); got != want {
		t.Errorf("%v, want %v", got, want)
	}
	g.Close()
}

func TestThreadTables(t *testing.T) {
	for _, c := range []struct {
		of     Table
		want   string
		events int
	}{{Lab(), "lab", 7}, {Named("intel-skx"), "intel-skx", 7}, {Named("intel-gnr"), "intel-gnr", 7}, {Named("amd-zen5"), "amd-zen5", 7}, {Named("arm-neoverse-n1"), "arm-neoverse-n1", 5}, {Generic(), "generic", 2}, {Table{Name: "new"}, "new", 0}} {
		got := c.of.With(ThreadFields)
		if got.Name != c.want || len(got.Events) != c.events {
			t.Errorf("%s: %+v", c.of.Name, got)
		}
		for i, e := range got.Events {
			if i > 0 && e.Field < got.Events[i-1].Field {
				t.Errorf("%s: event %d is %s", got.Name, i, e.Field)
			}
		}
	}
}

// A field that is the sum of three events is unknown as soon as one of them is.
func TestThreadSums(t *testing.T) {
	f := threadPMU{newUncore()}
	g, problems := OpenThread(f, Named("amd-zen5").With(ThreadFields))
	g.Start()
	for i, code := range []uint64{0x0964, 0x1f71, 0x1f72} {
		f.count[code] = [3]uint64{uint64(i + 1), 10, 10}
	}
	g.Stop()
	if got := g.Counts()[UncoreRequests]; len(problems) != 0 || got != unit.Some(6.0) {
		t.Errorf("%v, %v", got, problems)
	}
	f.count[0x1f72] = [3]uint64{9, 20, 10}
	g.Start()
	f.count[0x1f72] = [3]uint64{9, 30, 10} // never ran
	g.Stop()
	if got := g.Counts()[UncoreRequests]; got.Known() {
		t.Errorf("a sum that lacks a part: %v", got)
	}
	g.Close()
}
