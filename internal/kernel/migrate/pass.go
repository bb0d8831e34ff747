// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"fmt"

	"homenode/internal/kernel/pagecache"
	"homenode/internal/kernel/procfs"
	"homenode/internal/kernel/unix"
	"homenode/internal/migration"
	"homenode/internal/set"
	"homenode/internal/unit"
)

// pass is one walk through a process's mappings.
type pass struct {
	start uint64 // of the process, in ticks: a pid may be reused
	of    aim
	used  int     // the last Move that continued it
	areas []*area // ascending
	at    int     // the first that is not done
}

// aim is the purpose of a pass; another aim begins a new pass.
type aim struct {
	from, to     set.NodeSet
	leaveForeign bool
	hot          bool // only those
}

func aimOf(req Request) aim { return aim{req.From, req.To, req.LeaveForeign, req.Hot != nil} }

// area is a mapping that has pages elsewhere, or may have.
type area struct {
	pass       *pass
	index      int    // in it
	start      uint64 // bytes
	next, end  uint64 // what is not done yet
	size       uint64 // of its pages, bytes
	elsewhere  uint64 // pages, by numa_maps at the beginning of the pass
	sure       bool   // numa_maps has this very mapping: elsewhere is all there was
	found      uint64 // of them
	taken      uint64 // of these, pages that were handed out and have not come back
	kind       migration.Kind
	mostlyAnon bool   // a file's, but by numa_maps most pages are private copies
	file       fileID // zero: none
	offset     uint64 // of start in the file
	foreign    bool   // a file that is to be left: only private copies are moved
}

// rewind makes the pass continue with a page that was found but not done.
func (p page) rewind() {
	if p.area == nil || p.area.pass == nil { // a file's: its window is searched again
		return
	}
	p.area.next, p.area.found = min(p.area.next, p.addr), 0
	p.area.taken -= min(p.area.taken, p.size/p.area.size)
	p.area.pass.at = min(p.area.pass.at, p.area.index)
}

// passOf continues a pass or begins one.
func (r *run) passOf(pid int) (*pass, error) {
	m := r.m
	st, err := unix.Parsed(&m.buf, m.proc(pid, "stat"), procfs.ParseTaskStat)
	if err != nil {
		return nil, err
	}
	if p := m.pass[pid]; p != nil && p.start == st.Start && p.of == aimOf(r.req) {
		p.used = m.moves
		return p, nil
	}
	areas, err := r.areas(pid)
	if err != nil {
		return nil, err
	}
	p := &pass{start: st.Start, of: aimOf(r.req), used: m.moves, areas: areas}
	for i, a := range areas {
		a.pass, a.index = p, i
	}
	m.pass[pid] = p
	return p, nil
}

func (m *Mover) proc(pid int, file string) string {
	return m.root.Path(fmt.Sprintf("/proc/%d/%s", pid, file))
}

// areas are the mappings that have pages elsewhere, or may have.
func (r *run) areas(pid int) ([]*area, error) {
	mapped, err := readMappings(&r.m.buf, r.m.proc(pid, "numa_maps"), r.m.proc(pid, "maps"))
	if err != nil {
		return nil, err
	}
	var areas []*area
	for _, m := range mapped {
		if a := r.area(pid, m); a != nil {
			areas = append(areas, a)
		}
	}
	return areas, nil
}

// leave counts pages of a file that is left, as numa_maps has them.
func (r *run) leave(a *area, pages uint64) {
	if pages > 0 {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.res.Of(a.kind).Fail(LeftForeign, unit.Bytes(pages*a.size))
	}
}

// area is nil when there is nothing to be moved in a mapping.
func (r *run) area(pid int, m mapping) *area {
	a := &area{start: m.Start, next: m.Start, end: m.End, size: m.pages.PageSize, offset: m.Offset, sure: m.sure}
	for _, n := range m.pages.Nodes {
		if r.elsewhere(n.Node) {
			a.elsewhere += n.Pages
		}
	}
	if m.sure && a.elsewhere == 0 {
		return nil
	}
	if a.kind = r.kinds.Of(pid, m.Area); m.pages.Huge {
		a.kind = migration.Hugetlb
	}
	if a.kind == "" { // a device's
		return nil
	}
	if m.unsized || a.kind == migration.Hugetlb && !m.pages.Huge {
		r.note("unsized", "mapping %#x-%#x of process %d changed while it was read, and may be of huge pages: left", m.Start, m.End, pid)
		return nil
	}
	a.mostlyAnon = 2*m.pages.Anon > m.pages.Pages()
	if m.HasFile() && !r.ofFile(pid, m, a) {
		return nil
	}
	return a
}

// ofFile notes the file of a mapping; false when all of it is left to others.
func (r *run) ofFile(pid int, m mapping, a *area) bool {
	a.file = pagecache.IDOf(r.m.root, pid, m.Area)
	left := r.j.foreign[a.file]
	if left == nil {
		return true
	}
	a.foreign = true
	all, anon := m.pages.Pages(), m.pages.Anon
	if all > 0 {
		ofFile := float64(all - min(anon, all))
		fresh := left.share(m.Offset, float64(a.elsewhere)*ofFile/float64(all), ofFile, a.size)
		r.leave(a, uint64(fresh))
	}
	return anon > 0 || !m.sure
}
