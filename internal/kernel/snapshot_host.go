// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"

	"homenode/internal/kernel/cgroup"
	"homenode/internal/kernel/procfs"
	"homenode/internal/snapshot"
	"homenode/internal/unit"
)

// balancing reads the setting (a kernel without CONFIG_NUMA_BALANCING has no such file)
// and the increase of the counters.
func (s *Snapshotter) balancing(d delta) snapshot.Balancing {
	return snapshot.Balancing{
		Mode:          number[int](s, "/proc/sys/kernel/numa_balancing"),
		PTEUpdates:    d.vmstat(func(v procfs.Vmstat) procfs.Count { return v.PTEUpdates }),
		HintFaults:    d.vmstat(func(v procfs.Vmstat) procfs.Count { return v.HintFaults }),
		HintLocal:     d.vmstat(func(v procfs.Vmstat) procfs.Count { return v.HintLocal }),
		PagesMigrated: d.vmstat(func(v procfs.Vmstat) procfs.Count { return v.PagesMigrated }),
		MigrateFailed: d.vmstat(func(v procfs.Vmstat) procfs.Count { return v.MigrateFailed }),
	}
}

// swapping is the increase of the counters of swapped pages.
func swapping(d delta) snapshot.Swapping {
	return snapshot.Swapping{
		In:  d.vmstat(func(v procfs.Vmstat) procfs.Count { return v.SwapIn }),
		Out: d.vmstat(func(v procfs.Vmstat) procfs.Count { return v.SwapOut }),
	}
}

// vmstat is the increase of a counter of /proc/vmstat.
func (d delta) vmstat(pick func(procfs.Vmstat) procfs.Count) unit.Value[uint64] {
	if d.was == nil {
		return unit.UnknownValue[uint64](oneReading)
	}
	if err := errors.Join(d.was.vmstat.err, d.now.vmstat.err); err != nil {
		return unit.UnknownValue[uint64](err.Error())
	}
	return since(pick(d.was.vmstat.v), pick(d.now.vmstat.v), "/proc/vmstat")
}

// cgroups is where the hierarchies are mounted whose files a person would write.
func (s *Snapshotter) cgroups() snapshot.Cgroups {
	at := func(h cgroup.Hier) snapshot.Hierarchy { return snapshot.Hierarchy{Path: h.Mount, V2: h.V2} }
	return snapshot.Cgroups{Cpuset: at(s.reader.layout.Cpuset), Memory: at(s.reader.layout.Memory)}
}

// number reads a file of one number.
func number[T int | uint64](s *Snapshotter, path string) unit.Value[T] {
	v, err := parsed(s, path, func(data []byte) (T, error) {
		n, err := procfs.ParseCount(path, data)
		return T(n), err
	})
	return valueOf(v, err, path)
}

func (s *Snapshotter) settings() snapshot.Settings {
	const thp = "/sys/kernel/mm/transparent_hugepage/enabled"
	mode, err1 := parsed(s, thp, chosen)
	swap, err2 := parsed(s, "/proc/meminfo", procfs.ParseSwap)
	return snapshot.Settings{
		ZoneReclaim: number[int](s, "/proc/sys/vm/zone_reclaim_mode"),
		THP:         valueOf(mode, err1, thp),
		SwapTotal:   opt(swap.Total, err2, "/proc/meminfo"),
		SwapFree:    opt(swap.Free, err2, "/proc/meminfo"),
	}
}

// chosen reads "always [madvise] never".
func chosen(data []byte) (string, error) {
	_, after, ok1 := bytes.Cut(data, []byte("["))
	word, _, ok2 := bytes.Cut(after, []byte("]"))
	if !ok1 || !ok2 || len(word) == 0 {
		return "", fmt.Errorf("line 1 %q: want one word in brackets (%w)", data[:min(60, len(data))], ErrMalformed)
	}
	return string(word), nil
}

// hypervisor names the hypervisor that this host is a guest of.
//
//  1. The processors' flag shows whether there is one; only x86 has such a flag.
//  2. Its name is /sys/hypervisor/type (Xen), or else the firmware's name for the
//     machine.
func (s *Snapshotter) hypervisor() unit.Value[string] {
	name, from := procfs.ReadHypervisor(&s.buf, s.cfg.Reader.Root)
	if from == "" {
		return unit.UnknownValue[string]("/proc/cpuinfo has no flags line")
	}
	return unit.Measured(name, from)
}

// text reads a small file; "" when it cannot be read.
func (s *Snapshotter) text(path string) string { return s.buf.Text(s.cfg.Reader.Root.Path(path)) }

// numberIn reads a number from a small file, if it exists.
func (s *Snapshotter) numberIn(path string) (int, bool) {
	n, err := strconv.Atoi(s.text(path))
	return n, err == nil
}
