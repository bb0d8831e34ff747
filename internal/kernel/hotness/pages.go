// SPDX-License-Identifier: Apache-2.0

package hotness

import (
	"cmp"
	"slices"
	"sort"

	"homenode/internal/kernel/procfs"
	"homenode/internal/migration"
	"homenode/internal/unit"
)

// Pages are those that were accessed recently. They no longer change: several goroutines
// may read them.
type Pages struct {
	spans    map[int][]span // by process, ascending, apart from each other
	mappings []Mapping
	heat     migration.Heat
	notes    []string
}

// span is [start, end), of whole pages. 16 bytes: 10 million pages of which every second
// one is hot take 80 MB; adjacent ones take next to nothing.
type span struct{ start, end uint64 }

// Mapping is a mapping that a process had at the end of the search.
type Mapping struct {
	PID   int        `json:"pid"`
	Start uint64     `json:"start"` // addresses
	End   uint64     `json:"end"`
	Path  string     `json:"path"` // as /proc/PID/maps has it
	RSS   unit.Bytes `json:"rss_bytes"`
	Hot   unit.Bytes `json:"hot_bytes"` // ≤ RSS
}

// Hot reports whether the page at addr was accessed: for the first page of a huge one,
// whether any part of it was. See migrate.Hot.
func (p Pages) Hot(pid int, addr uint64) bool {
	s := p.spans[pid]
	i := sort.Search(len(s), func(i int) bool { return s[i].end > addr })
	return i < len(s) && s[i].start <= addr
}

// Heat says how it was found, and how much.
func (p Pages) Heat() migration.Heat { return p.heat }

// Mappings are those of all processes, with the hot part of each; by process, ascending.
func (p Pages) Mappings() []Mapping { return p.mappings }

// Notes are what the user must know about the result, a sentence each.
func (p Pages) Notes() []string { return p.notes }

// settle makes spans of what was found in a process: in order, without overlaps, of whole
// units (pages, or huge pages), and only within mappings. areas ascend.
func settle(found []span, areas []procfs.SmapsArea, grain unit.Bytes) []span {
	found = merged(found)
	var all []span
	for _, a := range areas {
		size := max(unitOf(a), uint64(grain))
		i := sort.Search(len(found), func(i int) bool { return found[i].end > a.Start })
		for ; i < len(found) && found[i].start < a.End; i++ {
			s := span{max(found[i].start, a.Start), min(found[i].end, a.End)}
			all = join(all, span{max(s.start&^(size-1), a.Start), min(up(s.end, size), a.End)})
		}
	}
	return slices.Clip(all)
}

// up rounds up; the last unit of the address space ends at its end.
func up(addr, size uint64) uint64 {
	if addr > ^uint64(0)-size {
		return ^uint64(0)
	}
	return (addr + size - 1) &^ (size - 1)
}

// hugePage is the size of a transparent huge page: PMD size on x86-64, and on arm64 with
// 4 KiB pages.
const hugePage = 2 << 20

// unitOf is how much of a mapping one hit heats, in bytes: a power of two.
func unitOf(a procfs.SmapsArea) uint64 {
	if a.Huge > 0 {
		return max(hugePage, uint64(a.PageSize))
	}
	return uint64(a.PageSize)
}

// merged sorts in place, and joins spans that touch.
func merged(s []span) []span {
	byStart := func(a, b span) int { return cmp.Compare(a.start, b.start) }
	if !slices.IsSortedFunc(s, byStart) {
		slices.SortFunc(s, byStart)
	}
	into := s[:0]
	for _, one := range s {
		into = join(into, one)
	}
	return into
}

// join appends a span that starts no earlier than the last.
func join(s []span, one span) []span {
	if n := len(s); n > 0 && one.start <= s[n-1].end {
		s[n-1].end = max(s[n-1].end, one.end)
		return s
	}
	return append(s, one)
}

// mappingsOf computes how much of each mapping is hot: no more than is resident, since a
// region or a widened hit may have pages that are not.
func mappingsOf(pid int, spans []span, areas []procfs.SmapsArea) []Mapping {
	var all []Mapping
	for _, a := range areas {
		m := Mapping{PID: pid, Start: a.Start, End: a.End, Path: a.Path, RSS: a.RSS + a.HugeTLB}
		i := sort.Search(len(spans), func(i int) bool { return spans[i].end > a.Start })
		for ; i < len(spans) && spans[i].start < a.End; i++ {
			m.Hot += unit.Bytes(min(spans[i].end, a.End) - max(spans[i].start, a.Start))
		}
		m.Hot = min(m.Hot, m.RSS)
		all = append(all, m)
	}
	return all
}
