// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"

	sys "golang.org/x/sys/unix"

	"homenode/internal/kernel/cgroup"
	"homenode/internal/kernel/perf"
	"homenode/internal/kernel/procfs"
	"homenode/internal/kernel/unix"
	"homenode/internal/set"
	"homenode/internal/unit"
	"homenode/internal/window"
)

// group is a process, or a cgroup: one workload.
type group struct {
	id        string
	pid       int // 0: a cgroup
	sensitive unit.Opt[bool]
	cpus      set.CPUSet // those that its cpuset allows, or their substitute: see bound
	threads   []*thread  // ascending by tid
}

// thread is one that is followed. Its id alone does not identify it: ids are reused.
type thread struct {
	tid     int
	start   uint64 // ticks after boot
	stat    unix.Kept
	sched   unix.Kept       // without counters
	count   *perf.TaskGroup // nil: why says why
	refused bool            // by the kernel, or for lack of descriptors, and not since it ended
	short   bool            // no descriptors are left for it: its files are not kept open either
	why     string          //
	sample  perf.TaskSample // of this period
	ran     int64           // schedstat's, ns; −1: not read yet
	cpu     unit.Opt[int]   //
	words   []uint64        // its affinity, as the kernel gave it
	allowed set.CPUSet      // the same as a set
	checked uint64          // round of look after which its start time was last read
	round   uint64          // round of look in which it was last seen
	gone    bool            // it ended since
}

// findThreads finds new threads, and forgets those that have ended.
func (r *ThreadReader) findThreads() error {
	r.looked = r.cfg.Now()
	if r.topology.Changed(&r.buf) {
		if err := r.readMachine(); err != nil {
			return err
		}
	}
	groups, err := r.found()
	if err != nil {
		return err
	}
	r.round++
	r.unread, r.whyUnread = 0, nil
	taken := map[int]bool{}
	for _, g := range groups {
		old := r.groupOf(g.id)
		r.meet(g, old, taken)
		r.bound(g, old)
	}
	for tid, t := range r.byTID {
		if t.round != r.round {
			r.closeThread(t)
			delete(r.byTID, tid)
		}
	}
	r.groups = slices.DeleteFunc(groups, func(g *group) bool { return len(g.threads) == 0 })
	slices.SortFunc(r.groups, func(a, b *group) int { return cmp.Compare(a.id, b.id) })
	r.reportShort()
	r.prepare()
	return nil
}

// groupOf is the group of the last look; nil: there was none.
func (r *ThreadReader) groupOf(id string) *group {
	i, ok := slices.BinarySearchFunc(r.groups, id, func(g *group, id string) int { return cmp.Compare(g.id, id) })
	if !ok {
		return nil
	}
	return r.groups[i]
}

// found are the processes, in the order in which they were named, then the cgroups. A
// process that is named twice belongs to the first. A cgroup that was there and is not
// found has ended only if its own files say so: a directory that cannot be listed hides
// it as well.
func (r *ThreadReader) found() (all []*group, err error) {
	tag := unit.Some(true)
	if r.cfg.Infer {
		tag = unit.None[bool]()
	}
	for _, pid := range r.cfg.PIDs {
		all = append(all, &group{id: processID(pid), pid: pid, sensitive: tag})
	}
	for _, pid := range r.cfg.Watched {
		all = append(all, &group{id: processID(pid), pid: pid, sensitive: unit.Some(false)})
	}
	if len(r.cfg.Cgroups) == 0 {
		return all, nil
	}
	cgroups, err := r.layout.Discover(r.cfg.Cgroups)
	if err != nil {
		return nil, err
	}
	for _, c := range cgroups {
		all = append(all, &group{id: c.ID, sensitive: tag})
	}
	for _, g := range r.groups {
		if g.pid == 0 && !slices.ContainsFunc(cgroups, func(c cgroup.Cgroup) bool { return c.ID == g.id }) {
			all = append(all, &group{id: g.id, sensitive: tag})
		}
	}
	return all, nil
}

func processID(pid int) string { return "pid:" + strconv.Itoa(pid) }

// meet lists a group's threads and opens the new ones. A group that has ended has none.
// If they cannot be listed, those of the last look are still there.
func (r *ThreadReader) meet(g, old *group, taken map[int]bool) {
	tids, err := r.tidsOf(g)
	switch {
	case err == nil && len(tids) > 0:
	case err == nil || errors.Is(err, ErrGone):
		r.hasEnded(g)
	default:
		r.problem(err)
		tids = withThreadsOf(old, tids)
	}
	for _, tid := range tids {
		if taken[tid] {
			continue
		}
		taken[tid] = true
		if t := r.thread(g, tid); t != nil {
			t.round = r.round
			g.threads = append(g.threads, t)
			r.begun[g.id] = true
		}
	}
}

func (r *ThreadReader) hasEnded(g *group) {
	if r.begun[g.id] {
		r.begun[g.id] = false
		r.problem(fmt.Errorf("%s has ended", g.id))
	}
}

func withThreadsOf(g *group, tids []int) []int {
	if g != nil {
		for _, t := range g.threads {
			tids = append(tids, t.tid)
		}
	}
	slices.Sort(tids)
	return slices.Compact(tids)
}

func (r *ThreadReader) tidsOf(g *group) (tids []int, err error) {
	own, err := r.ownTIDs(g)
	if err != nil {
		return nil, err
	}
	if g.pid == 0 {
		tids, err = r.layout.TIDs(nil, g.id, &r.buf)
	} else {
		tids, err = ThreadIDs(r.cfg.Root, g.pid)
	}
	tids = slices.DeleteFunc(tids, func(tid int) bool { return slices.Contains(own, tid) })
	slices.Sort(tids)
	return tids, err
}

// ownTIDs are homenode's own threads: it does not move itself with its cgroup.
func (r *ThreadReader) ownTIDs(g *group) ([]int, error) {
	if g.pid != 0 || r.cfg.Root.Path("/") != "/" {
		return nil, nil
	}
	return ThreadIDs(r.cfg.Root, os.Getpid())
}

// thread is the thread with that id, opened if it is new; nil if it ended, or is a
// kernel thread.
func (r *ThreadReader) thread(g *group, tid int) *thread {
	old := r.byTID[tid]
	if old != nil && !old.gone {
		if old.short { // others may have ended since
			r.count(old)
		}
		return old
	}
	dir := fmt.Sprintf("/proc/%d/task/%d/", cmp.Or(g.pid, tid), tid)
	t := &thread{tid: tid, ran: -1}
	t.stat.Path, t.sched.Path = r.cfg.Root.Path(dir+"stat"), r.cfg.Root.Path(dir+"schedstat")
	data, err := t.stat.ReadLine(&r.buf)
	if err != nil {
		if !errors.Is(unix.Classify(err), ErrGone) {
			r.unread++
			r.whyUnread = cmp.Or(r.whyUnread, unix.Explain("read", dir+"stat", "", err))
		}
		return nil
	}
	st, err := procfs.ParseTaskStat(data)
	if err != nil || st.KernelThread() || st.State == 'Z' || st.State == 'X' {
		r.problem(err)
		t.stat.Close()
		return nil
	}
	t.start, t.cpu = st.Start, unit.Some(st.CPU)
	if old != nil {
		r.closeThread(old)
	}
	r.count(t)
	r.byTID[tid] = t
	return t
}

// count opens a thread's counters.
func (r *ThreadReader) count(t *thread) {
	if r.meter == nil {
		t.why = r.noPerf
		return
	}
	c, err := r.meter.Open(t.tid)
	t.short = errors.Is(err, sys.EMFILE) || errors.Is(err, sys.ENFILE)
	t.refused = err != nil && !errors.Is(err, ErrGone)
	if t.short {
		t.stat.Close()
	}
	if err != nil {
		t.why = err.Error()
		if r.err == nil || errors.Is(r.err, ErrGone) {
			r.err = err
		}
		return
	}
	t.count = c
	r.opened++
}

func (r *ThreadReader) closeThread(t *thread) {
	t.stat.Close()
	t.sched.Close()
	if t.count != nil {
		r.meter.Close(t.count)
		t.count = nil
		r.opened--
	}
}

// reportShort reports how many threads are not read, or not counted: when the first
// are, and whenever the number has doubled. The penalty of some of the threads is the
// penalty of those only.
func (r *ThreadReader) reportShort() {
	uncounted, why := 0, ""
	for _, g := range r.groups {
		for _, t := range g.threads {
			if t.count == nil && t.refused {
				uncounted++
				why = cmp.Or(why, t.why)
			}
		}
	}
	if r.grown(&r.reportedUncounted, uncounted) {
		r.problem(fmt.Errorf("%d of %d threads are not counted: %s", uncounted, len(r.byTID), why))
	}
	if r.grown(&r.reportedUnread, r.unread) {
		r.problem(fmt.Errorf("%d threads are not read: %w", r.unread, r.whyUnread))
	}
}

func (r *ThreadReader) grown(reported *int, now int) bool {
	if now > 0 && now <= 2*(*reported) {
		return false
	}
	*reported = now
	return now > 0
}

// bound finds the CPUs that a group may use: its cpuset's. If that is not known, the
// CPUs that its threads may use together take its place. All CPUs would not do: every
// narrower thread would count as pinned by another process. Threads that homenode has
// narrowed show less than in the look before.
func (r *ThreadReader) bound(g, old *group) {
	if len(g.threads) == 0 {
		return
	}
	var err error
	if g.cpus, err = r.allowedOf(g); err == nil {
		return
	}
	if !r.reportedCPUs[g.id] {
		r.reportedCPUs[g.id] = true
		r.problem(fmt.Errorf("the cpuset of %s is not known: the CPUs that its threads may use together take its place: %w", g.id, err))
	}
	ours := false
	for _, t := range g.threads {
		if r.readAffinity(t) {
			g.cpus, ours = g.cpus.Union(t.allowed), ours || r.isOurs(t)
		}
	}
	if ours && old != nil {
		g.cpus = g.cpus.Union(old.cpus)
	}
}

// allowedOf is the CPUs that the cpuset of a group allows, of those online.
func (r *ThreadReader) allowedOf(g *group) (set.CPUSet, error) {
	if err := r.noLayout; err != nil {
		return set.CPUSet{}, err
	}
	id := g.id
	if g.pid != 0 {
		var err error
		if id, err = r.layout.CpusetOf(g.pid, &r.buf); err != nil {
			return set.CPUSet{}, err
		}
	}
	e, err := r.layout.ReadEffective(id, &r.buf)
	if err == nil && e.CPUs.IsEmpty() {
		err = fmt.Errorf("cgroup %s has no CPUs (%w)", id, ErrMalformed)
	}
	return e.CPUs.Intersect(r.allOnline), err
}

// prepare makes the workloads that Read fills in.
func (r *ThreadReader) prepare() {
	r.w.Workloads = r.w.Workloads[:0]
	for _, g := range r.groups {
		n := len(r.w.Nodes)
		r.w.Workloads = append(r.w.Workloads, window.Workload{
			ID: g.id, Owner: cgroup.NoOwner, Sensitive: g.sensitive,
			CPUByNode:  make([]unit.Value[float64], n),
			AnonByNode: unknownBytes(n), FileByNode: unknownBytes(n),
			StallCycles: unit.UnknownValue[uint64](notRead), Quota: unit.UnknownValue[float64](notRead),
			Threads: make([]window.Thread, 0, len(g.threads)),
			Binding: window.Binding{CPUs: g.cpus},
		})
	}
}

func unknownBytes(n int) []unit.Value[unit.Bytes] {
	all := make([]unit.Value[unit.Bytes], n)
	for i := range all {
		all[i].From = notRead
	}
	return all
}
