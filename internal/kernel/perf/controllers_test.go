// SPDX-License-Identifier: Apache-2.0

package perf

import (
	"errors"
	"strings"
	"testing"

	sys "golang.org/x/sys/unix"

	"homenode/internal/kernel/kerneltest"
	"homenode/internal/kernel/unix"
	"homenode/internal/machine"
	"homenode/internal/set"
	"homenode/internal/unit"
)

// fakeUncore counts by (type, config).
type fakeUncore struct {
	*fakePerf
	attrs map[int]sys.PerfEventAttr
	count map[uint64][3]uint64 // by config

	refuse func(attr *sys.PerfEventAttr, cpu int) error
}

func (f *fakeUncore) Trace(int, int, int) (unix.Trace, error) { panic("controllers have no trace") }

func (f *fakeUncore) OpenTask(attr *sys.PerfEventAttr, pid, cpu, _ int) (int, error) {
	if pid != -1 || cpu < 0 {
		return 0, sys.EINVAL
	}
	if f.refuse != nil {
		if err := f.refuse(attr, cpu); err != nil {
			return 0, err
		}
	}
	f.next++
	f.attrs[f.next], f.open[f.next] = *attr, cpu
	return f.next, nil
}

func (f *fakeUncore) Read(fd int, words []uint64) (int, error) {
	v := f.count[f.attrs[fd].Config]
	return copy(words, v[:]), nil
}
func (f *fakeUncore) Ring(int, int) (unix.Ring, error) { return nil, errors.New("no ring") }
func (f *fakeUncore) Enable(int) error                 { return nil }
func (f *fakeUncore) Disable(int) error                { return nil }

func twoPackages() machine.Machine {
	m := machine.Machine{Packages: []set.CPUSet{set.FromCPUs(0, 1), set.FromCPUs(2, 3)}}
	for n := range 2 {
		m.Nodes = append(m.Nodes, machine.Node{ID: n, CPUs: m.Packages[n], Memory: unit.Some(unit.GiB)})
	}
	for cpu := range 4 {
		m.CPUs = append(m.CPUs, machine.CPU{ID: cpu, Online: true, Node: unit.Some(cpu / 2), Package: unit.Some(cpu / 2)})
	}
	return m
}

func controllerFiles(mask string) map[string]string {
	const dir = "/sys/bus/event_source/devices/uncore_imc_0/"
	return map[string]string{
		dir + "type": "14\n", dir + "cpumask": mask, dir + "format/event": "config:0-7\n", dir + "format/umask": "config:8-15\n",
		dir + "events/cas_count_read": "event=0x04,umask=0x03\n", dir + "events/clockticks": "event=0x0\n", dir + "events/rpq_not_empty": "event=0x11\n",
		dir + "events/cas_count_write": "event=0x04,umask=0x0c\n",
	}
}

func TestControllers(t *testing.T) {
	tree := kerneltest.Tree(t, controllerFiles("0,2\n"))
	f := newUncore()
	c, err := OpenControllers(f, tree, twoPackages())
	if err != nil {
		t.Fatal(err)
	}
	f.count[0x304] = [3]uint64{1000, 10, 5} // it shared its counter half of the time
	f.count[0xc04] = [3]uint64{300, 10, 10}
	f.count[0] = [3]uint64{500, 10, 10}
	f.count[0x11] = [3]uint64{200, 10, 10}
	got, err := c.Read(2)
	want := ControllerSums{Reads: 2000, Writes: 300, Ticks: 500, BusyTicks: 200, KnownReads: true, KnownB: true, KnownWrites: true}
	if err != nil || len(got) != 2 || got[0] != want || got[1] != want {
		t.Errorf("%+v, %v; want %+v for both nodes", got, err, want)
	}
	for kind := range controllerKinds + 1 {
		if from := c.From(kind); !strings.HasPrefix(from, "perf uncore_imc/") || kind != ControllerAll && strings.Contains(from, "//") {
			t.Errorf("the source of sum %d is called %q", kind, from)
		}
	}
	f.count[0x304] = [3]uint64{1100, 20, 15}
	if got, _ := c.Read(2); got[0].Reads != 100 {
		t.Errorf("second read: %d lines, want the 100 since the first", got[0].Reads)
	}
}

func TestControllersWhoseNodeIsUnclear(t *testing.T) {
	several := twoPackages()
	several.Packages = []set.CPUSet{set.FromCPUs(0, 1, 2, 3)}
	for i := range several.CPUs {
		several.CPUs[i].Package = unit.Some(0)
	}
	far := twoPackages()
	far.Nodes = append(far.Nodes, machine.Node{ID: 2, Memory: unit.Some(unit.GiB)})
	for why, m := range map[string]machine.Machine{"several nodes": several, "memory without CPUs": far} {
		f := newUncore()
		_, err := OpenControllers(f, kerneltest.Tree(t, controllerFiles("0\n")), m)
		if !errors.Is(err, unix.ErrNotSupported) || !strings.Contains(err.Error(), why) {
			t.Errorf("want not supported, for %q; got %v", why, err)
		}
	}
}

func newUncore() *fakeUncore {
	return &fakeUncore{fakePerf: newFake(), attrs: map[int]sys.PerfEventAttr{}, count: map[uint64][3]uint64{}}
}

// An event that no counter was free for is unknown: reads make all of it unknown,
// the queue only how busy it was, writes only themselves.
func TestControllersThatDidNotRun(t *testing.T) {
	f := newUncore()
	c, err := OpenControllers(f, kerneltest.Tree(t, controllerFiles("0,2\n")), twoPackages())
	if err != nil {
		t.Fatal(err)
	}
	f.count[0x304], f.count[0], f.count[0x11] = [3]uint64{10, 10, 10}, [3]uint64{10, 10, 10}, [3]uint64{0, 10, 0}
	if got, err := c.Read(2); err != nil || got[0] != (ControllerSums{Reads: 10, Ticks: 10, KnownReads: true}) {
		t.Errorf("no queue: %+v, %v", got, err)
	}
	f.count[0x304] = [3]uint64{10, 20, 10}
	if got, err := c.Read(2); err != nil || got[0].KnownReads || got[0].Why == nil {
		t.Errorf("no reads: %+v, %v", got, err)
	}
}

// A sum over only some of a node's controllers is unknown.
func TestControllersOfWhichOneFails(t *testing.T) {
	files := controllerFiles("0,2\n")
	for path, text := range controllerFiles("0,2\n") {
		files[strings.Replace(path, "imc_0", "imc_1", 1)] = text
	}
	files["/sys/bus/event_source/devices/uncore_imc_1/type"] = "15\n"
	f := newUncore()
	f.refuse = func(attr *sys.PerfEventAttr, cpu int) error {
		if attr.Type == 15 && cpu == 2 {
			return sys.EBUSY
		}
		return nil
	}
	c, err := OpenControllers(f, kerneltest.Tree(t, files), twoPackages())
	if err != nil {
		t.Fatal(err)
	}
	f.count[0x304] = [3]uint64{10, 10, 10}
	got, err := c.Read(2)
	if err != nil || got[0].Reads != 20 || !got[0].KnownReads || got[1].KnownReads || !errors.Is(got[1].Why, sys.EBUSY) {
		t.Errorf("%+v, %v", got, err)
	}
}

func FuzzPMUEvent(f *testing.F) {
	f.Add("event=0x04,umask=0x03", "config:0-7")
	f.Add("event=1,inv", "config:0-7,32-35")
	f.Fuzz(func(t *testing.T, event, format string) {
		config, err := parseEvent(event, func(string) (bits, error) { return parseFormat(format) })
		if err != nil && config != 0 {
			t.Errorf("%#x beside an error", config)
		}
	})
}
