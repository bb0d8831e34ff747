// SPDX-License-Identifier: Apache-2.0

package sampling

import (
	"cmp"
	"slices"

	"homenode/internal/snapshot"
	"homenode/internal/unit"
)

const (
	lineShift, pageShift = 6, 12
	// maxLines is the number of lines that are remembered; accesses to further ones
	// still count for their mapping. A line takes some 250 bytes with its entry in the
	// map, 600 once written: 150 MB at most.
	maxLines = 1 << 18
	// maxAddrs addresses are kept of the loads of a thread in a mapping: common needs
	// no more. maxKept bounds all addresses and all pages: 8 bytes and some 40 each.
	maxAddrs, maxKept = 1 << 12, 1 << 21
	// What is shown: more is noise for a person and for a rule.
	maxPlaces, maxShared, maxFunctions = 40, 20, 5
	// maxAgain bounds how often a process's mappings are read again.
	maxAgain = 4
)

// Folder folds accesses. It is not safe for concurrent use.
type Folder struct {
	spaces Spaces
	nodes  int
	nodeOf func(cpu int) int // index of the CPU's node, −1 when unknown
	pids   map[int]*process
	places map[placeKey]*place
	lines  map[lineKey]*line
	loads  uint64
	stores uint64
	kept   int // addresses and pages
}

type process struct {
	Space
	known     bool
	again     int               // how often its mappings were read again
	functions map[uint64]string // by instruction
}

type placeKey struct {
	pid   int
	start uint64
}

type place struct {
	snapshot.Place
	cycles, weighed uint64
	ips             map[uint64]*snapshot.Function
	pages           map[uint64]uint32 // sampled stores, by number
	unkept          uint32            // stores on pages for which there was no room
	loadsBy         map[int][]uint64  // addresses, by TID
}

// lineKey names a cache line. Memory that processes share is the same line in all of
// them: its key is its file and offset, with pid 0.
type lineKey struct {
	file string
	pid  int
	line uint64
}

type line struct {
	pid           int
	addr          uint64
	mapping       string
	loads, stores []uint32
	modified      uint32            // of both, that took it from a cache that had changed it
	ips           map[uint64]uint32 // of stores; nil: none
	writers       map[int]bool      // by TID; nil: none
	others        map[int]uint32    // samples of processes other than pid; nil: none
}

// NewFolder returns an empty Folder for a machine with this many nodes.
func NewFolder(spaces Spaces, nodes int, nodeOf func(cpu int) int) *Folder {
	return &Folder{spaces: spaces, nodes: nodes, nodeOf: nodeOf, pids: map[int]*process{}, places: map[placeKey]*place{}, lines: map[lineKey]*line{}}
}

// Add folds one access. One without a user address or a known CPU is only counted.
func (f *Folder) Add(a Access) {
	if a.Store {
		f.stores++
	} else {
		f.loads++
	}
	n := f.nodeOf(a.CPU)
	if a.Kernel || a.Addr == 0 || n < 0 {
		return
	}
	p := f.process(a.PID)
	if !p.known {
		return
	}
	f.count(f.place(p, a), a, n)
	f.addLine(p, a, n)
}

func (f *Folder) process(pid int) *process {
	p := f.pids[pid]
	if p == nil {
		p = &process{functions: map[uint64]string{}}
		p.Space, p.known = f.spaces.Space(pid)
		f.pids[pid] = p
	}
	return p
}

func (f *Folder) place(p *process, a Access) *place {
	area, ok := p.area(a.Addr)
	if !ok && p.again < maxAgain { // it has mapped more since
		p.again++
		if s, known := f.spaces.Space(a.PID); known {
			p.Space = s
			area, ok = p.area(a.Addr)
		}
	}
	key := placeKey{a.PID, area.Start}
	if pl := f.places[key]; pl != nil {
		return pl
	}
	pl := &place{ips: map[uint64]*snapshot.Function{}, pages: map[uint64]uint32{}, loadsBy: map[int][]uint64{}}
	pl.PID, pl.Name, pl.Start, pl.Mapping = a.PID, p.Name, area.Start, label(area)
	if !ok {
		pl.Mapping = "mapped later"
	}
	pl.Loads, pl.Remote, pl.Stores = make([]uint64, f.nodes), make([]uint64, f.nodes), make([]uint64, f.nodes)
	f.places[key] = pl
	return pl
}

func (f *Folder) count(p *place, a Access, node int) {
	page := a.Addr >> pageShift
	stores := uint32(0)
	if a.Store {
		stores = 1
	}
	if before, known := p.pages[page]; known || f.keep() {
		p.pages[page] = before + stores
	} else {
		p.unkept += stores
	}
	fn := p.ips[a.IP]
	if fn == nil {
		fn = &snapshot.Function{}
		p.ips[a.IP] = fn
	}
	fn.Samples++
	if a.Store {
		p.Stores[node]++
		fn.Writes++
		return
	}
	p.Loads[node]++
	if all := p.loadsBy[a.TID]; len(all) < maxAddrs && f.keep() {
		p.loadsBy[a.TID] = append(all, a.Addr)
	}
	if a.Level == RemoteDRAM || a.Level == RemoteCache {
		p.Remote[node]++
	}
	if a.Weight > 0 {
		p.cycles, p.weighed = p.cycles+a.Weight, p.weighed+1
	}
}

// keep says whether there is room to remember one more.
func (f *Folder) keep() bool {
	if f.kept == maxKept {
		return false
	}
	f.kept++
	return true
}

func (f *Folder) addLine(p *process, a Access, node int) {
	area, _ := p.area(a.Addr)
	key := lineKey{pid: a.PID, line: a.Addr >> lineShift}
	if len(area.Access) == 4 && area.Access[3] == 's' {
		key = lineKey{file: area.Path, line: (a.Addr - area.Start + area.Offset) >> lineShift}
	}
	l := f.lines[key]
	if l == nil {
		if len(f.lines) == maxLines {
			return
		}
		l = &line{pid: a.PID, addr: a.Addr >> lineShift << lineShift, mapping: label(area),
			loads: make([]uint32, f.nodes), stores: make([]uint32, f.nodes)}
		f.lines[key] = l
	}
	if a.Modified {
		l.modified++
	}
	l.of(a.PID, 1)
	if !a.Store {
		l.loads[node]++
		return
	}
	if l.ips == nil {
		l.ips, l.writers = map[uint64]uint32{}, map[int]bool{}
	}
	l.stores[node]++
	l.ips[a.IP]++
	l.writers[a.TID] = true
}

// of counts samples of a process other than the line's first.
func (l *line) of(pid int, n uint32) {
	if pid == l.pid {
		return
	}
	if l.others == nil {
		l.others = map[int]uint32{}
	}
	l.others[pid] += n
}

// users are the processes with samples of a line, most first; none if there is only
// one.
func (l *line) users() (all []snapshot.LineUser) {
	if l.others == nil {
		return nil
	}
	rest := sum(widen(l.loads)) + sum(widen(l.stores))
	for pid, n := range l.others {
		all = append(all, snapshot.LineUser{PID: pid, Samples: uint64(n)})
		rest -= uint64(n)
	}
	all = append(all, snapshot.LineUser{PID: l.pid, Samples: rest})
	slices.SortFunc(all, func(a, b snapshot.LineUser) int {
		return cmp.Or(cmp.Compare(b.Samples, a.Samples), cmp.Compare(a.PID, b.PID))
	})
	return all
}

// Samples is the result of all accesses.
func (f *Folder) Samples(how unit.Source, from string, lost uint64) snapshot.Samples {
	return snapshot.Samples{How: how, From: from, Loads: f.loads, Stores: f.stores, Lost: lost, Places: f.topPlaces(), Lines: f.shared()}
}

func (f *Folder) topPlaces() []snapshot.Place {
	var all []snapshot.Place
	for _, p := range f.places {
		if p.weighed > 0 {
			p.Latency = unit.Some(float64(p.cycles) / float64(p.weighed))
		}
		p.Functions = f.functions(p.PID, p.ips)
		parts, loads := partsOf(p.loadsBy)
		p.Common = common(parts, loads)
		p.Pages, p.Written, p.Changes = 0, int(p.unkept), uint64(p.unkept) // which may be anywhere
		for page, stores := range p.pages {
			if !several(parts, page<<pageShift, (page+1)<<pageShift-1) {
				continue
			}
			p.Pages++
			if stores > 0 {
				p.Written++
			}
			p.Changes += uint64(stores)
		}
		all = append(all, p.Place)
	}
	slices.SortFunc(all, func(a, b snapshot.Place) int {
		return cmp.Or(cmp.Compare(sum(b.Remote), sum(a.Remote)), cmp.Compare(sum(b.Loads)+sum(b.Stores), sum(a.Loads)+sum(a.Stores)),
			cmp.Compare(a.PID, b.PID), cmp.Compare(a.Start, b.Start))
	})
	return all[:min(len(all), maxPlaces)]
}

// part is where a thread loads.
type part struct{ low, high uint64 }

// partsOf are the parts of the threads of a mapping, and the loads of these threads: a part is where
// 90 % of a thread's sampled loads are. The ends are left out, because a stray load is no part.
// Threads with few samples have none.
func partsOf(loadsBy map[int][]uint64) (parts []part, loads []uint64) {
	const few, most = 20, 64
	for _, addrs := range loadsBy {
		if len(addrs) < few || len(parts) == most {
			continue
		}
		slices.Sort(addrs)
		parts = append(parts, part{addrs[len(addrs)/20], addrs[len(addrs)-1-len(addrs)/20]})
		loads = append(loads, addrs...)
	}
	return parts, loads
}

// several says that low to high is within the parts of two threads or more.
func several(parts []part, low, high uint64) bool {
	n := 0
	for _, p := range parts {
		if p.low <= high && low <= p.high {
			n++
		}
	}
	return n > 1
}

// common distinguishes a table that several threads read from parts that each thread
// has for itself, also within one mapping: the share of loads within the parts of two
// threads or more.
func common(parts []part, loads []uint64) unit.Opt[unit.Ratio] {
	within := 0
	for _, at := range loads {
		if several(parts, at, at) {
			within++
		}
	}
	return unit.RatioOf(float64(within), float64(len(loads)))
}

// functions sums instructions by the function they are in.
func (f *Folder) functions(pid int, ips map[uint64]*snapshot.Function) []snapshot.Function {
	p := f.process(pid)
	by := map[string]*snapshot.Function{}
	for ip, n := range ips {
		name, known := p.functions[ip]
		if !known {
			name = p.function(ip)
			p.functions[ip] = name
		}
		if by[name] == nil {
			by[name] = &snapshot.Function{Name: name}
		}
		by[name].Samples += n.Samples
		by[name].Writes += n.Writes
	}
	var all []snapshot.Function
	for _, n := range by {
		all = append(all, *n)
	}
	slices.SortFunc(all, func(a, b snapshot.Function) int {
		return cmp.Or(cmp.Compare(b.Samples, a.Samples), cmp.Compare(a.Name, b.Name))
	})
	return all[:min(len(all), maxFunctions)]
}

// shared lists the lines and pages that several nodes access and at least one writes.
//  1. Such cache lines; most written first.
//  2. Pages that several nodes write although none of their lines is shared: such a
//     page can be near one of them only.
func (f *Folder) shared() []snapshot.Line {
	var all []snapshot.Line
	pages := map[lineKey]*line{}
	hot := map[lineKey]bool{}
	for key, l := range f.lines {
		page := lineKey{key.file, key.pid, key.line >> (pageShift - lineShift)}
		if ofSeveralNodes(l.loads, l.stores) && any32(l.stores) {
			hot[page] = true
			all = append(all, f.line(l, 1<<lineShift))
		}
		pages[page] = merge(pages[page], l)
	}
	for key, p := range pages {
		if !hot[key] && ofSeveralNodes(p.stores) {
			p.addr = p.addr >> pageShift << pageShift
			all = append(all, f.line(p, 1<<pageShift))
		}
	}
	slices.SortFunc(all, func(a, b snapshot.Line) int {
		return cmp.Or(cmp.Compare(sum(b.Stores), sum(a.Stores)), cmp.Compare(sum(b.Loads), sum(a.Loads)),
			cmp.Compare(a.PID, b.PID), cmp.Compare(a.Addr, b.Addr))
	})
	return all[:min(len(all), maxShared)]
}

func (f *Folder) line(l *line, bytes int) snapshot.Line {
	ips := map[uint64]*snapshot.Function{}
	for ip, n := range l.ips {
		ips[ip] = &snapshot.Function{Samples: uint64(n), Writes: uint64(n)}
	}
	return snapshot.Line{PID: l.pid, Addr: l.addr, Bytes: unit.Bytes(bytes), Mapping: l.mapping,
		Loads: widen(l.loads), Stores: widen(l.stores), Modified: uint64(l.modified), Writers: len(l.writers), Users: l.users(), Functions: f.functions(l.pid, ips)}
}

func merge(into, l *line) *line {
	if into == nil {
		into = &line{pid: l.pid, addr: l.addr, mapping: l.mapping, loads: make([]uint32, len(l.loads)), stores: make([]uint32, len(l.stores)), ips: map[uint64]uint32{}, writers: map[int]bool{}}
	}
	for i := range l.loads {
		into.loads[i] += l.loads[i]
		into.stores[i] += l.stores[i]
	}
	into.modified += l.modified
	for ip, n := range l.ips {
		into.ips[ip] += n
	}
	for tid := range l.writers {
		into.writers[tid] = true
	}
	rest := uint32(sum(widen(l.loads)) + sum(widen(l.stores)))
	for pid, n := range l.others {
		into.of(pid, n)
		rest -= n
	}
	into.of(l.pid, rest)
	return into
}

// ofSeveralNodes says that more than one node is in any of the counts.
func ofSeveralNodes(counts ...[]uint32) bool {
	nodes := 0
	for i := range counts[0] {
		for _, c := range counts {
			if c[i] > 0 {
				nodes++
				break
			}
		}
	}
	return nodes > 1
}

func any32(counts []uint32) bool {
	return slices.ContainsFunc(counts, func(n uint32) bool { return n > 0 })
}

func widen(counts []uint32) []uint64 {
	all := make([]uint64, len(counts))
	for i, n := range counts {
		all[i] = uint64(n)
	}
	return all
}

func sum(counts []uint64) (n uint64) {
	for _, c := range counts {
		n += c
	}
	return n
}
