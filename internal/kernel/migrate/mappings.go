// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"slices"
	"strings"

	"homenode/internal/kernel/procfs"
	"homenode/internal/kernel/unix"
)

// mapping is a mapping of a process with what numa_maps says of its pages.
type mapping struct {
	procfs.Area
	pages procfs.VMA // the lines of numa_maps that may belong to it, added up
	// sure says that numa_maps has exactly this mapping. If not, its counts are a guess,
	// and the pages themselves must be asked.
	sure bool
	// unsized: a mapping that is not sure, and may be of huge pages of the pool. Then the
	// size of its pages is unknown.
	unsized bool
}

// mostReadings is how often the two files are read until they agree. A program that maps
// and unmaps all the time may never let them. A mapping that does not agree then is not
// sure, and costs a walk through its addresses.
const mostReadings = 3

// readMappings joins maps, which knows the ends and the files, with numa_maps, which
// knows the pages. The kernel shows the two one after the other, and the process runs
// meanwhile: a mapping grows, shrinks, splits, or merges with its neighbour (vma_merge in
// mm/mmap.c), so that it begins elsewhere in the second file. Mappings are therefore
// matched by overlap.
func readMappings(buf *unix.Buffer, numaMaps, maps string) ([]mapping, error) {
	const need = "CAP_SYS_PTRACE"
	for n := 1; ; n++ {
		lines, err := procfs.ReadNumaMaps(buf, numaMaps, procfs.MapsBudget())
		if err != nil {
			return nil, unix.Explain("read", numaMaps, need, err)
		}
		areas, err := procfs.ReadAreas(buf, maps, procfs.MapsBudget())
		if err != nil {
			return nil, unix.Explain("read", maps, need, err)
		}
		if all := joinMappings(lines, areas); n == mostReadings || !slices.ContainsFunc(all, func(m mapping) bool { return !m.sure }) {
			return all, nil
		}
	}
}

// joinMappings gives each mapping of maps the lines of numa_maps that begin in it, or
// before it where there is no longer a mapping: those may have reached into it. So each
// line counts once. A mapping is sure if a single line begins where it does.
func joinMappings(lines []procfs.VMA, areas []procfs.Area) (all []mapping) {
	lines = newest(lines, func(v procfs.VMA) uint64 { return v.Start })
	wasHuge := false // the line before
	for _, a := range apart(areas) {
		if a.Path == "[vsyscall]" { // the kernel's own page, and not in numa_maps
			continue
		}
		n := 0
		for n < len(lines) && lines[n].Start < a.End {
			n++
		}
		all = append(all, newMapping(a, lines[:n], wasHuge))
		if n > 0 {
			wasHuge = lines[n-1].Huge
		}
		lines = lines[n:]
	}
	return all
}

func newMapping(a procfs.Area, lines []procfs.VMA, wasHuge bool) mapping {
	if i := slices.IndexFunc(lines, func(v procfs.VMA) bool { return v.Start == a.Start }); i > 0 {
		lines = lines[i:] // what begins before it ended there
	}
	m := mapping{Area: a, pages: procfs.VMA{Start: a.Start, PageSize: uint64(unix.PageSize())}}
	if m.sure = len(lines) == 1 && lines[0].Start == a.Start; m.sure {
		m.pages = lines[0]
		return m
	}
	huge := func(v procfs.VMA) bool { return v.Huge }
	m.unsized = a.HasFile() && (wasHuge || slices.ContainsFunc(lines, huge) || strings.HasPrefix(a.Path, "/anon_hugepage"))
	for _, v := range lines {
		m.pages = plus(m.pages, v)
	}
	return m
}

// plus adds up the pages of two lines with pages of one size.
func plus(sum, v procfs.VMA) procfs.VMA {
	if v.PageSize != sum.PageSize {
		return sum
	}
	sum.Anon += v.Anon
	for _, n := range v.Nodes {
		i := slices.IndexFunc(sum.Nodes, func(have procfs.NodePages) bool { return have.Node == n.Node })
		if i < 0 {
			sum.Nodes = append(sum.Nodes, n)
			continue
		}
		sum.Nodes[i].Pages += n.Pages
	}
	return sum
}

// newest leaves out what a later line covers. The kernel prints some mappings, lets the
// process run, and looks for the mapping at the address where it stopped. A mapping that
// has grown downwards meanwhile is printed again, as it is now.
func newest[T any](all []T, start func(T) uint64) (kept []T) {
	for _, one := range all {
		for len(kept) > 0 && start(kept[len(kept)-1]) >= start(one) {
			kept = kept[:len(kept)-1]
		}
		kept = append(kept, one)
	}
	return kept
}

// apart makes mappings end where the next one begins.
func apart(areas []procfs.Area) []procfs.Area {
	kept := newest(areas, func(a procfs.Area) uint64 { return a.Start })
	for i := range kept[:max(0, len(kept)-1)] {
		kept[i].End = min(kept[i].End, kept[i+1].Start)
	}
	return kept
}
