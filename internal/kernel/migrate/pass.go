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

// pass is one way through a process's mappings.
type pass struct {
	start uint64 // of the process, in ticks: a pid may be reused
	of    aim
	used  int     // the last Move that went on with it
	areas []*area // ascending
	at    int     // the first that is not done
}

// aim is what a pass was begun for; another one begins a new pass.
type aim struct {
	from, to     set.NodeSet
	leaveForeign bool
	hot          bool // only those
}

func aimOf(req Request) aim { return aim{req.From, req.To, req.LeaveForeign, req.Hot != nil} }

// area is a mapping that has pages elsewhere.
type area struct {
	pass       *pass
	index      int    // in it
	start      uint64 // bytes
	next, end  uint64 // what is not done yet
	size       uint64 // of its pages, bytes
	elsewhere  uint64 // pages, by numa_maps when the pass began
	found      uint64 // of them
	kind       migration.Kind
	mostlyAnon bool   // a file's, but by numa_maps most pages are private copies
	file       fileID // zero: none
	offset     uint64 // of start in the file
	foreign    bool   // a file that is to be left: only private copies are moved
}

// rewind makes the pass go on with a page that was found but not done.
func (p page) rewind() {
	if p.area == nil || p.area.pass == nil { // a file's: its window is gone through again
		return
	}
	p.area.next, p.area.found = min(p.area.next, p.addr), 0
	p.area.pass.at = min(p.area.pass.at, p.area.index)
}

// passOf continues a pass or begins one.
func (r *run) passOf(pid int) (*pass, error) {
	m := r.m
	data, err := m.buf.ReadFile(m.proc(pid, "stat"))
	if err != nil {
		return nil, unix.Explain("read", m.proc(pid, "stat"), "", err)
	}
	st, err := procfs.ParseTaskStat(data)
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

// areas joins numa_maps, which knows the pages, with maps, which knows the ends and
// files. The two are read one after the other: a mapping only one of them has is left
// for the next pass.
func (r *run) areas(pid int) ([]*area, error) {
	const need = "CAP_SYS_PTRACE"
	m := r.m
	vmas, err := procfs.ReadNumaMaps(&m.buf, m.proc(pid, "numa_maps"), procfs.MapsBudget())
	if err != nil {
		return nil, unix.Explain("read", m.proc(pid, "numa_maps"), need, err)
	}
	mapped, err := procfs.ReadAreas(&m.buf, m.proc(pid, "maps"), procfs.MapsBudget())
	if err != nil {
		return nil, unix.Explain("read", m.proc(pid, "maps"), need, err)
	}
	return r.join(pid, vmas, mapped), nil
}

// leave counts pages of a file that is left, as numa_maps has them.
func (r *run) leave(a *area, pages uint64) {
	if pages > 0 {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.res.Of(a.kind).Fail(LeftForeign, unit.Bytes(pages*a.size))
	}
}

func (r *run) join(pid int, vmas []procfs.VMA, mapped []procfs.Area) []*area {
	byStart := map[uint64]procfs.Area{}
	for _, a := range mapped {
		byStart[a.Start] = a
	}
	var areas []*area
	for _, v := range vmas {
		at, known := byStart[v.Start]
		a := &area{start: v.Start, next: v.Start, end: at.End, size: v.PageSize, offset: at.Offset}
		for _, n := range v.Nodes {
			if r.elsewhere(n.Node) {
				a.elsewhere += n.Pages
			}
		}
		if !known || a.elsewhere == 0 {
			continue
		}
		if a.kind = r.kinds.Of(pid, at); v.Huge {
			a.kind = migration.Hugetlb
		}
		if a.kind == "" { // a device's
			continue
		}
		a.mostlyAnon = 2*v.Anon > v.Pages()
		if at.HasFile() {
			a.file = pagecache.IDOf(r.m.root, pid, at)
			if left := r.j.foreign[a.file]; left != nil && v.Pages() > 0 {
				a.foreign = true
				ofFile := float64(v.Pages() - min(v.Anon, v.Pages()))
				fresh := left.share(at.Offset, float64(a.elsewhere)*ofFile/float64(v.Pages()), ofFile, a.size)
				r.leave(a, uint64(fresh))
				if v.Anon == 0 {
					continue
				}
			}
		}
		areas = append(areas, a)
	}
	return areas
}
