// SPDX-License-Identifier: Apache-2.0

package resctrl

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	sys "golang.org/x/sys/unix"

	"homenode/internal/action"
	"homenode/internal/journal"
	"homenode/internal/kernel"
	"homenode/internal/kernel/cgroup"
	"homenode/internal/kernel/procfs"
	"homenode/internal/kernel/resctrl"
	"homenode/internal/kernel/unix"
	"homenode/internal/unit"
)

// Files of a group in the journal: the first is the group itself, the last the threads of
// its workload.
const (
	File     = "group"
	Schemata = "schemata"
	Tasks    = "tasks"
)

// Values of group and tasks.
const (
	made = "made"
	all  = "all"
	some = "some"
	none = "none"
)

const prefix = "resctrl "

// Setting names a workload's group in the journal.
func Setting(workload, file string) journal.Setting {
	return journal.Setting{Cgroup: prefix + resctrl.ControlName(workload), File: file}
}

// GroupOf is the group of a setting. It is false for other owners' settings and for names
// that are not ours: those are never touched, whatever a journal says.
func GroupOf(s journal.Setting) (string, bool) {
	name, ok := strings.CutPrefix(s.Cgroup, prefix)
	return name, ok && resctrl.IsControl(name)
}

// Config of an Applier.
type Config struct {
	// Peak is bytes/s of a domain (an L3 cache), which AMD's and mba_MBps' numbers need.
	// nil: unknown. Then bandwidth is not limited there, and a class of bandwidth alone is
	// refused.
	Peak func(domain int) unit.Bytes
	// DirectOwners: workloads of these owners are isolated although homenode leaves them
	// alone.
	DirectOwners []string
}

// Applier is the journal.Owner of resctrl's control groups, and hands on everything else.
type Applier struct {
	journal.Next
	cfg    Config
	root   unix.Root
	open   func() (resctrl.Acts, bool, error) // the file system, and whether it is mounted with mba_MBps
	layout cgroup.Layout
	noCPUs error // no cpuset here: no workload can be found
	buf    unix.Buffer
	of     map[string]string // workload by group, of the planned groups
}

// No setting of a group is overruled, or outlives a boot. What the owner behind knows is
// handed on (Next).
var _ journal.Link = (*Applier)(nil)

// Ended forgets the workload of a group that no longer exists.
func (a *Applier) Ended(s journal.Setting) error {
	if name, ok := GroupOf(s); !ok {
		return a.Next.Ended(s)
	} else if s.File == File {
		delete(a.of, name)
	}
	return nil
}

// New acts on the running kernel: it needs the token that only kernel.Live makes. next is
// the owner of all other settings. Where there is none, why says the reason.
func New(live kernel.LiveToken, cfg Config, next journal.Owner, why error) (*Applier, error) {
	if !live.Valid() {
		return nil, fmt.Errorf("act on resctrl: only the running kernel can be acted upon (%w)", kernel.ErrNotSupported)
	}
	open := func() (resctrl.Acts, bool, error) { // called each time: it may be mounted later
		m, err := resctrl.Find(live.Root())
		if err != nil {
			return nil, false, err
		}
		acts, err := resctrl.Live(live, m)
		return acts, m.MBps, err
	}
	return newApplier(live.Root(), cfg, open, next, why), nil
}

func newApplier(root unix.Root, cfg Config, open func() (resctrl.Acts, bool, error), next journal.Owner, why error) *Applier {
	if cfg.Peak == nil {
		cfg.Peak = func(int) unit.Bytes { return 0 }
	}
	behind := journal.Next{Behind: next, Why: fmt.Sprintf("it cannot be acted upon here: %v", why)}
	a := &Applier{cfg: cfg, Next: behind, root: root, open: open, of: map[string]string{}}
	if a.layout, a.noCPUs = cgroup.Find(root); a.noCPUs == nil {
		a.noCPUs = a.layout.NeedCpuset()
	}
	return a
}

// Plan lists what a class changes: the group, its limits, its threads. A class of zero is
// taken back by removing the group.
func (a *Applier) Plan(ctx context.Context, step action.Step) ([]journal.Change, error) {
	if step.Kind != action.SetClass {
		return a.Next.Plan(ctx, step)
	}
	group := journal.Change{Setting: Setting(step.Workload, File), New: made}
	if step.Class == nil || step.Class.None() {
		group.New, group.Original = "", true
		return []journal.Change{group}, nil
	}
	limits, left, err := a.plan(step.Workload, *step.Class)
	if err != nil {
		return nil, err
	}
	a.of[resctrl.ControlName(step.Workload)] = step.Workload
	return []journal.Change{
		group,
		{Setting: Setting(step.Workload, Schemata), New: limits.String(), Note: left},
		// The group must be found again after a crash; its threads need not.
		{Setting: Setting(step.Workload, Tasks), New: all, Brief: true},
	}, nil
}

// plan checks that a workload may have a group. It returns what to write into it, and what
// it leaves out.
func (a *Applier) plan(workload string, c action.Class) (limits resctrl.Schemata, left string, err error) {
	if err := a.mayAct(workload); err != nil {
		return nil, "", err
	}
	acts, mbps, err := a.open()
	if err != nil {
		return nil, "", fmt.Errorf("isolate %s: %w", workload, err)
	}
	info, err := resctrl.ReadInfo(acts)
	if err != nil {
		return nil, "", fmt.Errorf("isolate %s: %w", workload, err)
	}
	if err := a.hasRoom(acts, info, workload); err != nil {
		return nil, "", err
	}
	now, err := resctrl.ReadSchemata(acts, "")
	if err != nil {
		return nil, "", fmt.Errorf("isolate %s: %w", workload, err)
	}
	limits, left, err = a.limits(info, c, now, mbps)
	if err != nil {
		return nil, "", refuse(workload, err.Error())
	}
	return limits, left, nil
}

// limits are a class's schemata. Where only its bandwidth cannot be limited (no MB, or
// absolute numbers and an unknown peak), its cache is limited all the same; left says so.
func (a *Applier) limits(info resctrl.Info, c action.Class, now resctrl.Schemata, mbps bool) (s resctrl.Schemata, left string, err error) {
	of := resctrl.Percent
	if c.Bandwidth > 0 {
		of, err = a.unit(mbps)
	}
	if err == nil {
		s, err = info.Schemata(c, now, of, a.cfg.Peak)
	}
	if err == nil || c.Cache == 0 || c.Bandwidth == 0 {
		return s, "", err
	}
	cache, failed := info.Schemata(action.Class{Cache: c.Cache}, now, of, a.cfg.Peak)
	if failed != nil { // not the bandwidth alone
		return nil, "", err
	}
	return cache, "only its cache is limited: " + err.Error(), nil
}

func refuse(workload, why string) error {
	return fmt.Errorf("isolate %s: %w: %s", workload, journal.ErrRefused, why)
}

func (a *Applier) mayAct(workload string) error {
	owner := cgroup.NoOwner
	if a.noCPUs == nil {
		owner = a.layout.Owner(workload, &a.buf)
	}
	switch {
	case a.noCPUs != nil:
		return a.noCPUs
	case path.Clean("/"+workload) != workload || workload == "/":
		return refuse(workload, "want the path of a cgroup below the root")
	case cgroup.LeftAlone(owner) && !slices.Contains(a.cfg.DirectOwners, owner):
		return refuse(workload, "owned by "+owner+", which may group its threads: it is observed and left alone; name it in direct_owners to allow that")
	}
	return nil
}

// hasRoom refuses workloads grouped by others, and reports that all groups are in use.
func (a *Applier) hasRoom(acts resctrl.Acts, info resctrl.Info, workload string) error {
	groups, err := resctrl.ReadGroups(acts)
	if err != nil { // the groups of its tasks are unknown
		return fmt.Errorf("isolate %s: %w", workload, err)
	}
	tids, err := a.tids(workload)
	if err != nil {
		return err
	}
	if err := notForeign(workload, tids, groups); err != nil {
		return err
	}
	for name, other := range a.of {
		related := strings.HasPrefix(other, workload+"/") || strings.HasPrefix(workload, other+"/")
		if related && slices.Contains(groups.Controls, name) {
			return refuse(workload, fmt.Sprintf("%s is isolated, and a thread can be in one group only", other))
		}
	}
	name := resctrl.ControlName(workload)
	there := slices.Contains(groups.Controls, name)
	if _, known := a.of[name]; there && !known { // a start restores all that is on record
		return refuse(workload, fmt.Sprintf("resctrl group %q exists and is on no record: it is another homenode's, or left by one whose journal is lost; remove it with rmdir", name))
	}
	if n := info.CLOSIDs(); groups.CLOSIDs >= n && !there {
		return refuse(workload, fmt.Sprintf("all %d control groups of this machine are in use", n))
	}
	return nil
}

func notForeign(workload string, tids []int, groups resctrl.Groups) error {
	for _, tid := range tids {
		if where, ok := groups.Foreign[tid]; ok {
			return refuse(workload, fmt.Sprintf("its thread %d is in resctrl group %q, which another process made", tid, where))
		}
	}
	return nil
}

func (a *Applier) tids(workload string) ([]int, error) {
	if a.noCPUs != nil {
		return nil, a.noCPUs
	}
	return a.layout.TIDs(nil, workload, &a.buf)
}

// unit is the meaning of numbers of MB. Nothing is written where that is unknown: 50 %
// would be 6 GB/s.
func (a *Applier) unit(mbps bool) (resctrl.Unit, error) {
	if mbps {
		return resctrl.MiBps, nil
	}
	data, err := a.buf.ReadFile(a.root.Path("/proc/cpuinfo"))
	if err != nil {
		return 0, fmt.Errorf("what its bandwidth is counted in is not known: %w", unix.Explain("read", "/proc/cpuinfo", "", err))
	}
	cpu, err := procfs.ParseCPUInfo(data)
	if err != nil {
		return 0, fmt.Errorf("what its bandwidth is counted in is not known: %w", err)
	}
	switch {
	case cpu.Vendor == "GenuineIntel", cpu.Vendor == "" && cpu.Implementer != 0: // Arm's MPAM
		return resctrl.Percent, nil
	case cpu.Vendor == "AuthenticAMD", cpu.Vendor == "HygonGenuine":
		return resctrl.EighthGB, nil
	}
	return 0, fmt.Errorf("what its bandwidth is counted in is not known: /proc/cpuinfo names %.40q", cpu.Vendor)
}

// Read reads a setting. No other process uses the name of a group of ours, so the name
// alone identifies it: its ID is always the same.
func (a *Applier) Read(s journal.Setting) (journal.Current, error) {
	name, ok := GroupOf(s)
	if !ok {
		return a.Next.Read(s)
	}
	acts, _, err := a.open()
	if err != nil {
		return journal.Current{}, fmt.Errorf("read %s: %w", s, err)
	}
	value, err := a.value(acts, name, s.File)
	return journal.Current{Value: value, ID: 1}, err
}

func (a *Applier) value(acts resctrl.Acts, name, file string) (string, error) {
	switch file {
	case File:
		_, err := acts.ID(name)
		if err == nil {
			return made, nil
		} else if resctrl.IsGone(err) {
			return "", nil
		}
		return "", resctrl.Explain(acts, "read", name, err)
	case Schemata:
		now, err := resctrl.ReadSchemata(acts, name)
		return now.String(), err
	case Tasks:
		missing, n, err := a.missing(acts, name)
		switch {
		case err != nil:
			return "", err
		case len(missing) == 0:
			return all, nil
		case len(missing) < n:
			return some, nil
		}
		return none, nil
	}
	return "", fmt.Errorf("read resctrl %s: no such setting as %q (%w)", name, file, kernel.ErrNotSupported)
}

// missing are the threads of a group's workload that are not in it, out of n. After a
// restart the group's workload is unknown; then no more threads are moved.
func (a *Applier) missing(acts resctrl.Acts, name string) (missing []int, n int, err error) {
	workload, ok := a.of[name]
	if !ok {
		return nil, 0, fmt.Errorf("resctrl %s: its workload is not known any more (%w)", name, kernel.ErrGone)
	}
	tids, err := a.tids(workload)
	if err != nil {
		return nil, 0, err
	}
	in, err := resctrl.Tasks(acts, name, nil)
	if err != nil {
		return nil, 0, err
	}
	slices.Sort(in)
	for _, tid := range tids {
		if _, ok := slices.BinarySearch(in, tid); !ok {
			missing = append(missing, tid)
		}
	}
	return missing, len(tids), nil
}

// Same compares. Of schemata only the resource that was set counts: others may have any
// value. The threads in a group change by themselves, as new ones start: only "all are in
// it" is a value of ours.
func (a *Applier) Same(s journal.Setting, current, recorded string) bool {
	if _, ok := GroupOf(s); !ok {
		return a.Next.Same(s, current, recorded)
	}
	switch s.File {
	case Schemata:
		c, err1 := resctrl.ParseSchemata([]byte(current))
		r, err2 := resctrl.ParseSchemata([]byte(recorded))
		return err1 == nil && err2 == nil && r.Within(c)
	case Tasks:
		return (current == all) == (recorded == all)
	}
	return current == recorded
}

// Write acts. The permit proves that the change is on record.
func (a *Applier) Write(p journal.Permit, s journal.Setting, value string) error {
	name, ok := GroupOf(s)
	if !ok {
		return a.Next.Write(p, s, value)
	}
	if !p.Valid() {
		return fmt.Errorf("set %s: %w: the journal gave no permit", s, journal.ErrRefused)
	}
	acts, _, err := a.open()
	if err != nil {
		return fmt.Errorf("set %s: %w", s, err)
	}
	switch {
	case s.File == File && value == made:
		return makeGroup(acts, name)
	case s.File == File:
		err := removeGroup(acts, name)
		if err == nil {
			delete(a.of, name)
		}
		return err
	case s.File == Schemata:
		return setLimits(acts, name, value)
	case s.File == Tasks && value == all:
		return a.moveIn(acts, name)
	}
	return nil // tasks: they leave with the group
}

func makeGroup(acts resctrl.Acts, name string) error {
	err := acts.Make(name)
	switch {
	case err == nil, errors.Is(err, sys.EEXIST):
		return nil
	case errors.Is(err, sys.ENOSPC), errors.Is(err, sys.EBUSY): // no CLOSID, or no RMID
		return fmt.Errorf("%w: %w", journal.ErrRefused, resctrl.Explain(acts, "make", name, err))
	}
	return resctrl.Explain(acts, "make", name, err)
}

func removeGroup(acts resctrl.Acts, name string) error {
	err := acts.Remove(name)
	if resctrl.IsGone(err) {
		return nil
	}
	return resctrl.Explain(acts, "remove", name, err)
}

func setLimits(acts resctrl.Acts, name, value string) error {
	err := acts.Write(path.Join(name, "schemata"), value)
	if errors.Is(err, sys.EINVAL) {
		return fmt.Errorf("%w: %w", journal.ErrRefused, resctrl.Explain(acts, "limit", name+" to "+value, err))
	}
	return resctrl.Explain(acts, "limit", name+" to "+value, err)
}

// passes is the number of searches for new threads. What threads of the group start is in
// it by itself. A thread that was not in the group yet may have started another in the
// meantime, which the next pass finds.
const passes = 4

func (a *Applier) moveIn(acts resctrl.Acts, name string) error {
	for range passes {
		missing, _, err := a.missing(acts, name)
		if err != nil || len(missing) == 0 {
			return err
		}
		groups, err := resctrl.ReadGroups(acts)
		if err != nil {
			return err
		}
		if err := notForeign(a.of[name], missing, groups); err != nil {
			return err
		}
		for _, tid := range missing {
			if err := resctrl.PutTask(acts, name, tid); err != nil {
				return err
			}
		}
	}
	return nil
}

// Equivalent: every original can be restored.
func (a *Applier) Equivalent(s journal.Setting, original string) (string, error) {
	if _, ok := GroupOf(s); ok {
		return original, nil
	}
	return a.Next.Equivalent(s, original)
}
