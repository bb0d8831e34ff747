// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"slices"
	"time"

	"homenode/internal/kernel/pagecache"
	"homenode/internal/unit"
)

// journey is all calls of Move that together move some processes: the state kept from one
// call to the next beside the passes through their mappings.
type journey struct {
	of   aim
	pids []int
	used int // the last Move that continued it

	// The files, and how much of them is done.
	files    []pagecache.File
	listed   int // the Move that listed them; 0: none yet
	listedOf []int
	done     map[fileID]bool
	at       fileID // the first that is not done
	offset   uint64 // everything before it is done

	foreign map[fileID]*foreignFile
	stay    keySet // pages that failed, and that other mappings may share
	refused map[int]error
	bound   time.Duration // the bound of the sizers
	several bool          // several workers, which the sizers also depend on
	sizers  map[class]*sizer
}

// foreignFile is a file that is left to other processes.
type foreignFile struct {
	bytes unit.Bytes            // mapped by the processes, by numa_maps
	seen  map[uint64][2]float64 // pages of the mapping at an offset: elsewhere, all
}

// listLife is the number of calls of Move that use one list of files. Other processes
// come to share the files meanwhile, and reading what every process of the host has is
// expensive.
const listLife = 16

// journeyOf continues the journey that some of the processes are on, or begins one.
func (m *Mover) journeyOf(req Request) *journey {
	m.journeys = slices.DeleteFunc(m.journeys, func(j *journey) bool { return m.moves-j.used > passLife })
	var found *journey
	for _, j := range m.journeys {
		if j.of == aimOf(req) && slices.ContainsFunc(req.PIDs, func(pid int) bool { return slices.Contains(j.pids, pid) }) {
			found = j
		}
	}
	if found == nil {
		found = &journey{of: aimOf(req), done: map[fileID]bool{}, foreign: map[fileID]*foreignFile{}, stay: keySet{}, refused: map[int]error{}, bound: -1}
		m.journeys = append(m.journeys, found)
	}
	found.used, found.pids = m.moves, slices.Clone(req.PIDs)
	if several := req.Workers > 1; found.bound != req.MaxStall || found.several != several {
		found.bound, found.several, found.sizers = req.MaxStall, several, map[class]*sizer{}
	}
	return found
}

func (m *Mover) forget(j *journey) {
	m.journeys = slices.DeleteFunc(m.journeys, func(other *journey) bool { return other == j })
}

// sizer is kept from call to call: the cost of a batch does not change between them.
// Another workload's pages may cost more.
func (j *journey) sizer(c class) *sizer {
	s := j.sizers[c]
	if s == nil {
		most := uint64(mostPages)
		if j.several && j.bound == 0 {
			most = sharedPages
		}
		s = newSizer(j.bound, max(1, int(most*smallPage/c.size)))
		j.sizers[c] = s
	}
	return s
}

// fresh reports that the list of files is of these processes, and recent.
func (j *journey) fresh(pids, of []int, moves int) bool {
	return j.listed > 0 && moves-j.listed < listLife && !slices.ContainsFunc(pids, func(pid int) bool { return !slices.Contains(of, pid) })
}

// finished notes that a file was gone through.
func (j *journey) finished(f pagecache.File) {
	j.done[f.ID] = true
	j.at, j.offset = fileID{}, 0
}

// from is where to continue in a file.
func (j *journey) from(f pagecache.File) uint64 {
	if j.at != f.ID {
		j.at, j.offset = f.ID, 0
	}
	return j.offset
}

// share counts a mapping of a file that is left, and returns how many of its pages were
// not counted before. If several processes map the same part of it, that part counts
// once.
func (f *foreignFile) share(offset uint64, elsewhere, all float64, size uint64) (fresh float64) {
	seen := f.seen[offset]
	fresh = max(0, elsewhere-seen[0])
	f.bytes += unit.Bytes(max(0, all-seen[1]) * float64(size))
	f.seen[offset] = [2]float64{max(elsewhere, seen[0]), max(all, seen[1])}
	return fresh
}
