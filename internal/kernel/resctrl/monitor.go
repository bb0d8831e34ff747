// SPDX-License-Identifier: Apache-2.0

package resctrl

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"time"

	"homenode/internal/action"
	"homenode/internal/kernel/unix"
	"homenode/internal/machine"
	"homenode/internal/set"
	"homenode/internal/unit"
	"homenode/internal/window"
)

// TIDs appends the threads of a workload's cgroup and of those below it.
type TIDs func(dst []int, workload string) ([]int, error)

// Monitor fills in Traffic, LocalTraffic, LLC and Class of workloads, round by round.
// It is not safe for concurrent use.
type Monitor struct {
	cfg      Config
	fs       FS
	acts     Acts // nil: groups are read, none is made
	info     Info
	clusters map[int]set.NodeSet // domains of several nodes that may be counted in part only

	round    int
	groups   map[string]*group // by workload
	past     map[string]*past  // by workload
	services map[string]*proxy // by name
	seen     Groups            // of this round
	blind    bool              // the groups of tasks are unknown in this round
	limbo    limbo
	errs     []error
	sizes    sizes
}

// past is what is remembered of a workload, with a group or without.
type past struct {
	control, mon string // the names of its groups
	proxy        proxy
	served       int    // last round in which its group was read; 0: never
	barred       string // why it has no group
	until        int    // round at which that is checked again
}

// barFor is the number of rounds for which a workload that cannot have a group is left
// alone.
const barFor = 32

// Open prepares to monitor what is mounted. The error is ErrNotMounted, ErrNoResctrl,
// or says what could not be read.
func Open(root unix.Root, cfg Config, m machine.Machine) (*Monitor, error) {
	mount, err := Find(root)
	if err != nil {
		return nil, err
	}
	if !cfg.Live.Valid() {
		return New(At(root, mount), nil, cfg, m)
	}
	acts, err := Live(cfg.Live, mount)
	if err != nil {
		return nil, err
	}
	return New(acts, acts, cfg, m)
}

// New is Open for a given file system. Groups that a killed homenode left are removed.
func New(fs FS, acts Acts, cfg Config, m machine.Machine) (*Monitor, error) {
	info, err := ReadInfo(fs)
	if err != nil {
		return nil, err
	}
	if info.Monitoring.RMIDs == 0 {
		return nil, fmt.Errorf("monitor by resctrl: it limits here, but counts nothing (%w)", unix.ErrNotSupported)
	}
	mon := &Monitor{
		cfg: cfg.withDefaults(), fs: fs, acts: acts, info: info, clusters: severalNodes(DomainsOf(m)),
		groups: map[string]*group{}, past: map[string]*past{}, services: map[string]*proxy{},
	}
	return mon, mon.removeLeft()
}

// SetMachine is called when CPUs went on- or offline.
func (m *Monitor) SetMachine(to machine.Machine) { m.clusters = severalNodes(DomainsOf(to)) }

// Info returns what this machine has.
func (m *Monitor) Info() Info { return m.info }

func (m *Monitor) removeLeft() error {
	if m.acts == nil {
		return nil
	}
	return removeMons(m.acts)
}

// removeMons removes all monitoring groups of ours.
func removeMons(acts Acts) error {
	left, err := ReadGroups(acts)
	errs := []error{err}
	for _, name := range left.Mons {
		errs = append(errs, remove(acts, path.Join(monGroups, name)))
	}
	return errors.Join(errs...)
}

// CleanLeft removes the monitoring groups of a killed homenode: they hold RMIDs. It is for
// the process that holds the journal's lock, so that no other homenode monitors. Where
// resctrl is not mounted, nothing was left.
func CleanLeft(live unix.Live) error {
	m, err := Find(live.Root())
	if errors.Is(err, unix.ErrNotSupported) {
		return nil
	} else if err != nil {
		return err
	}
	acts, err := Live(live, m)
	if err != nil {
		return err
	}
	return removeMons(acts)
}

func (m *Monitor) remove(dir string) error { return remove(m.acts, dir) }

// remove is idempotent. The tasks fall back to the group above.
func remove(acts Acts, dir string) error {
	err := acts.Remove(dir)
	if err == nil || IsGone(err) {
		return nil
	}
	return Explain(acts, "remove", dir, err)
}

// Close removes the groups that were made. The next start removes what Close could not.
func (m *Monitor) Close() error {
	var errs []error
	for id, g := range m.groups {
		if m.acts != nil && !g.control {
			errs = append(errs, m.remove(g.dir))
		}
		delete(m.groups, id)
	}
	return errors.Join(errs...)
}

// Round reads one window's figures of all workloads, and decides which get a group in the
// next one:
//
//  1. Read the groups. Those of other processes leave fewer RMIDs for us, and are left
//     alone.
//  2. For each group: add new threads of its cgroup, read its counters.
//  3. Workloads that were measured teach what their DRAM loads stand for; the others are
//     estimated.
//  4. Groups go round.
//
// The error joins what went wrong. A figure that could not be read is unknown, with the
// reason.
func (m *Monitor) Round(w *window.Window, at time.Time, tids TIDs) error {
	m.round++
	m.errs, m.sizes = nil, sizes{}
	m.look(w) // 1
	for i := range w.Workloads {
		m.measure(&w.Workloads[i], at, tids) // 2
	}
	for i := range w.Workloads { // 3
		if m.learn(&w.Workloads[i]); !w.Workloads[i].Traffic.Known() {
			m.estimate(&w.Workloads[i])
		}
	}
	if m.acts != nil && !m.blind {
		m.rotate(w, tids) // 4
	}
	return errors.Join(m.errs...)
}

func (m *Monitor) problem(err error) {
	if err != nil {
		m.errs = append(m.errs, err)
	}
}

// look is (1). Groups of workloads that are gone are removed. A control group of ours
// stands for the workload that it was made for.
func (m *Monitor) look(w *window.Window) {
	var err error
	m.seen, err = ReadGroups(m.fs)
	m.problem(err)
	m.blind = err != nil
	for id := range m.past {
		if _, ok := w.WorkloadIndex(id); !ok {
			m.drop(id)
			delete(m.past, id)
		}
	}
	for i := range w.Workloads {
		id := w.Workloads[i].ID
		if m.past[id] == nil {
			m.past[id] = &past{control: ControlName(id), mon: MonName(id)}
		}
		if err == nil {
			m.adopt(id)
		}
	}
	named := map[string]bool{}
	for i := range w.Workloads {
		name, _ := m.cfg.Service(w.Workloads[i].ID)
		named[name] = true
	}
	maps.DeleteFunc(m.services, func(name string, _ *proxy) bool { return !named[name] })
}

// adopt finds the existing group of a workload by its name: a control group that the
// owner made or, where no group is made here, a group of a running homenode.
func (m *Monitor) adopt(id string) {
	g, p := m.groups[id], m.past[id]
	dir, control := p.control, true
	if !slices.Contains(m.seen.Controls, dir) {
		dir, control = path.Join(monGroups, p.mon), false
		if g == nil && m.acts != nil {
			return
		}
		if !slices.Contains(m.seen.Mons, p.mon) || g != nil && g.control {
			delete(m.groups, id) // another process removed it
			return
		}
	}
	inode, err := m.fs.ID(dir)
	switch {
	case err != nil:
		m.drop(id)
	case g == nil || g.dir != dir || g.inode != inode:
		m.drop(id)
		m.groups[id] = &group{dir: dir, control: control, inode: inode}
	}
}

// drop removes a workload's group.
func (m *Monitor) drop(id string) {
	g := m.groups[id]
	if g == nil {
		return
	}
	delete(m.groups, id)
	if m.acts != nil && !g.control {
		m.problem(m.remove(g.dir))
	}
}

// bar sets why a workload can have no group, for some rounds.
func (m *Monitor) bar(id, why string) {
	m.drop(id)
	p := m.past[id]
	p.barred, p.until = why, m.round+barFor
}

// measure is (2).
func (m *Monitor) measure(wl *window.Workload, at time.Time, tids TIDs) {
	g := m.groups[wl.ID]
	if g == nil {
		return
	}
	if g.control {
		wl.Class = m.classOf(g.dir)
	}
	g.rounds++
	joined, why := m.follow(wl.ID, g, tids)
	if why != "" {
		m.bar(wl.ID, why)
		return
	}
	now, err := m.readCounts(g.dir, at)
	if err != nil {
		m.problem(err)
		m.bar(wl.ID, err.Error())
		return
	}
	before := g.last
	g.last = now
	if g.rounds < 2 { // the group did not exist from the start of the window
		return
	}
	m.past[wl.ID].served = m.round
	wl.LLC = now.held()
	wl.Traffic = since(fileTotal, before, now, func(d domainCounts) Count { return d.total }, m.cfg.MostRate)
	wl.LocalTraffic = since(fileLocal, before, now, func(d domainCounts) Count { return d.local }, m.cfg.MostRate)
	wl.LocalTraffic = localWithin(wl.LocalTraffic, wl.Traffic)
	if contested(wl.Traffic, wl.LocalLoads, wl.RemoteLoads) {
		stalled := unit.UnknownValue[unit.Bytes]("resctrl " + fileTotal + ": it stood still while DRAM loads were counted")
		wl.Traffic, wl.LocalTraffic = stalled, stalled
	}
	if joined > 0 {
		late := fmt.Sprintf("; %d of its threads were added only at the end", joined)
		wl.Traffic, wl.LocalTraffic = weaken(wl.Traffic, late), weaken(wl.LocalTraffic, late)
	}
}

// weaken makes a figure an estimate.
func weaken(v unit.Value[unit.Bytes], why string) unit.Value[unit.Bytes] {
	b, ok := v.Get()
	if !ok {
		return v
	}
	return unit.Estimated(b, v.From+why)
}

// learn is the first half of (3).
func (m *Monitor) learn(wl *window.Workload) {
	if wl.Traffic.How != unit.HowMeasured {
		return
	}
	m.past[wl.ID].proxy.learn(wl)
	name, _ := m.cfg.Service(wl.ID)
	if name == "" {
		return
	}
	if m.services[name] == nil {
		m.services[name] = &proxy{}
	}
	m.services[name].learn(wl)
}

// estimate is the second half of (3).
func (m *Monitor) estimate(wl *window.Workload) {
	why := m.why(wl)
	name, _ := m.cfg.Service(wl.ID)
	learnt{own: &m.past[wl.ID].proxy, service: m.services[name], name: name}.estimate(wl, why)
	if !wl.LLC.Known() && wl.LLC.From == "" {
		wl.LLC = unit.UnknownValue[unit.Bytes](why)
	}
}

// why is the reason why resctrl has no figure.
func (m *Monitor) why(wl *window.Workload) string {
	p := m.past[wl.ID]
	switch {
	case wl.Traffic.From != "":
		return wl.Traffic.From
	case m.groups[wl.ID] != nil:
		return "resctrl: its group is new, and the first reading is only a base"
	case p.barred != "" && m.round <= p.until:
		return p.barred
	case m.limbo.why != "":
		return "resctrl: no group for it now: " + m.limbo.why
	case m.acts == nil:
		return "resctrl: no group was made for it"
	}
	return fmt.Sprintf("resctrl: %d of %d workloads have a group in this window, and it has none", len(m.groups), len(m.past))
}

// classOf is the limit of a control group; nil where it cannot be read.
func (m *Monitor) classOf(dir string) *action.Class {
	c, err := ReadClass(m.fs, m.info, dir)
	if err != nil {
		m.problem(err)
		return nil
	}
	return &c
}
