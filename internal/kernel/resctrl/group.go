// SPDX-License-Identifier: Apache-2.0

package resctrl

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	sys "golang.org/x/sys/unix"

	"homenode/internal/window"
)

// group is a workload's group, as the previous round left it.
type group struct {
	dir     string
	control bool // made by the owner, who moves the tasks
	inode   uint64
	rounds  int // rounds since it was made or found
	known   []int
	looked  int // round in which its tasks were read
	last    counts
}

// lookAgain is the number of rounds that may pass without reading a group's tasks while
// the cgroup's threads stay the same. For each read the kernel goes through all threads
// of the host.
const lookAgain = 16

// follow adds new threads of a cgroup to its group, and returns those that left:
//
//  1. New threads of a thread in the group are in it by themselves.
//  2. Threads from outside are written; it does not matter if one has ended by now.
//  3. Threads that are in the group and no longer in the cgroup go back to the default
//     group. The cgroup is read after the group's tasks: a thread that was born in
//     between must not be taken for one that left.
//
// It returns the number of threads from outside, and why the workload cannot have a
// group.
func (m *Monitor) follow(id string, g *group, tids TIDs) (joined int, why string) {
	if m.acts == nil || g.control || m.blind {
		return 0, ""
	}
	now, err := tids(nil, id)
	if err != nil {
		return 0, err.Error()
	}
	slices.Sort(now)
	if why := m.foreign(now); why != "" {
		return 0, why
	}
	if slices.Equal(now, g.known) && m.round-g.looked < lookAgain {
		return 0, ""
	}
	in, err := Tasks(m.fs, g.dir, nil)
	if err != nil {
		return 0, err.Error()
	}
	if now, err = tids(nil, id); err != nil { // 3
		return 0, err.Error()
	}
	slices.Sort(now)
	slices.Sort(in)
	for _, tid := range minus(in, now) {
		m.problem(m.put("", tid)) // 3
	}
	joiners := minus(now, in) // 2
	if why := m.addGroup(g.dir, joiners); why != "" {
		return 0, why
	}
	g.known, g.looked = now, m.round
	return len(joiners), ""
}

// minus are the elements of a that are not in b; both ascend.
func minus(a, b []int) (rest []int) {
	for _, x := range a {
		if _, ok := slices.BinarySearch(b, x); !ok {
			rest = append(rest, x)
		}
	}
	return rest
}

// foreign reports that another process has grouped some of these threads.
func (m *Monitor) foreign(tids []int) string {
	n, where := 0, ""
	for _, tid := range tids {
		if dir, ok := m.seen.Foreign[tid]; ok {
			n, where = n+1, dir
		}
	}
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("resctrl: %d of its %d threads are in group %q, which another process made: they are left alone", n, len(tids), clip(where))
}

// addGroup moves threads into a group.
func (m *Monitor) addGroup(dir string, tids []int) (why string) {
	for _, tid := range tids {
		if err := m.put(dir, tid); err != nil {
			return err.Error()
		}
	}
	return ""
}

// put moves a thread; it does not matter if it has ended. Each thread takes a write of
// its own: several in one write, with commas, work only since 6.8.
func (m *Monitor) put(dir string, tid int) error { return PutTask(m.acts, dir, tid) }

// PutTask moves a thread into a group. The kernel's errors (rdtgroup_move_task in
// fs/resctrl/rdtgroup.c):
//
//	ESRCH   it has ended: no error here
//	EINVAL  a monitoring group takes only tasks of the control group above it
//	EPERM   another user's, and not root
func PutTask(acts Acts, dir string, tid int) error {
	err := acts.Write(path.Join(dir, "tasks"), strconv.Itoa(tid))
	if err == nil || errors.Is(err, sys.ESRCH) {
		return nil
	}
	return Explain(acts, "move thread "+strconv.Itoa(tid)+" into", "group "+quoted(dir), err)
}

func quoted(dir string) string {
	if dir == "" {
		return "(default)"
	}
	return dir
}

// limbo remembers that there was no RMID: the kernel holds freed ones back until their
// lines have left the caches (max_threshold_occupancy).
type limbo struct {
	why    string
	rounds int // to wait, doubling
	until  int
}

const longestLimbo = 16

func (l *limbo) hit(round int, err error) {
	l.rounds = min(max(1, 2*l.rounds), longestLimbo)
	l.why, l.until = err.Error(), round+l.rounds
}

// budget is the number of monitoring groups that may exist; held of them are held
// already.
func (m *Monitor) budget(held int) int {
	n := m.info.Monitoring.RMIDs - m.seen.RMIDs - m.cfg.Reserve
	if m.info.Monitoring.Counters.Known() { // two of them for each group
		r := infoReader{fs: m.fs}
		free := r.monitoring("info/L3_MON").Counters.Or(0)
		m.problem(errors.Join(r.errs...))
		n = min(n, held+free/2)
	}
	if m.cfg.Most > 0 {
		n = min(n, m.cfg.Most)
	}
	return max(n, 0)
}

// rotate is (4) of Round. Groups change hands one by one: where no RMID is available, the
// other workloads keep theirs.
func (m *Monitor) rotate(w *window.Window, tids TIDs) {
	var all []candidate
	held := 0
	m.sizes = sizesOf(w)
	for i := range w.Workloads {
		c, ok := m.candidate(&w.Workloads[i])
		if !ok {
			continue
		}
		if all = append(all, c); c.held > 0 {
			held++
		}
	}
	budget := m.budget(held)
	drop, add := choose(all, budget, m.cfg.Turn)
	for ; held > budget; held-- {
		m.drop(drop[0])
		drop = drop[1:]
	}
	if m.round < m.limbo.until {
		return
	}
	for _, id := range add {
		if held >= budget {
			m.drop(drop[0])
			drop, held = drop[1:], held-1
		}
		if !m.begin(id, tids) {
			return
		}
		if m.groups[id] != nil {
			held++
		}
	}
}

func (m *Monitor) candidate(wl *window.Workload) (candidate, bool) {
	p, g := m.past[wl.ID], m.groups[wl.ID]
	if g != nil && g.control || p.barred != "" && m.round <= p.until {
		return candidate{}, false
	}
	_, approved := m.cfg.Service(wl.ID)
	c := candidate{id: wl.ID, never: p.served == 0, waited: m.round - p.served, approved: approved, size: m.sizes.of(wl)}
	if g != nil {
		c.held = max(1, g.rounds)
	}
	return c, true
}

// sizes are sums over a window.
type sizes struct {
	loads, cpu float64
	counted    bool // the loads of all workloads are known
}

func sizesOf(w *window.Window) sizes {
	s := sizes{counted: true}
	for i := range w.Workloads {
		o := &w.Workloads[i]
		s.counted = s.counted && o.LocalLoads.Known() && o.RemoteLoads.Known()
		s.loads += float64(o.LocalLoads.Or(0) + o.RemoteLoads.Or(0))
		s.cpu += o.CPU.Or(0)
	}
	return s
}

// of is a workload's share of all loads from DRAM. If the loads of any workload are not
// counted, it is the share of the CPU time.
func (s sizes) of(wl *window.Workload) float64 {
	switch {
	case s.counted && s.loads > 0:
		return float64(wl.LocalLoads.Or(0)+wl.RemoteLoads.Or(0)) / s.loads
	case s.cpu > 0:
		return wl.CPU.Or(0) / s.cpu
	}
	return 0
}

// begin makes a group for a workload, and reports whether another can be tried.
func (m *Monitor) begin(id string, tids TIDs) bool {
	now, err := tids(nil, id)
	if err != nil {
		m.bar(id, err.Error())
		return true
	}
	if why := m.foreign(now); why != "" {
		m.bar(id, why)
		return true
	}
	if other, ok := m.shares(id); ok {
		m.bar(id, fmt.Sprintf("resctrl: its threads are counted with those of %s", other))
		return true
	}
	dir := path.Join(monGroups, MonName(id))
	err = m.acts.Make(dir)
	if errors.Is(err, sys.EEXIST) { // a removal that failed
		err = errors.Join(m.remove(dir), m.acts.Make(dir))
	}
	switch {
	case errors.Is(err, sys.ENOSPC), errors.Is(err, sys.EBUSY): // limbo: EBUSY since 4.18
		m.limbo.hit(m.round, Explain(m.fs, "make", dir, err))
		return false
	case err != nil:
		m.problem(Explain(m.fs, "make", dir, err))
		m.bar(id, "resctrl: its group could not be made")
		return false
	}
	m.limbo = limbo{}
	inode, err := m.fs.ID(dir)
	m.problem(err)
	g := &group{dir: dir, inode: inode}
	m.groups[id] = g
	if why := m.addGroup(dir, now); why != "" {
		m.bar(id, why)
		return true
	}
	slices.Sort(now)
	g.known, g.looked = now, m.round
	m.past[id].barred = ""
	// An RMID's first reading may be of its past, and on AMD it has no figure.
	_, err = m.readCounts(dir, time.Time{})
	m.problem(err)
	return true
}

// shares reports that a workload above or below this one has a group. A thread can be in
// one group only, and the threads of a cgroup include those of the cgroups below it.
func (m *Monitor) shares(id string) (string, bool) {
	for other := range m.groups {
		if strings.HasPrefix(id, other+"/") || strings.HasPrefix(other, id+"/") {
			return other, true
		}
	}
	return "", false
}
