// SPDX-License-Identifier: Apache-2.0

package affinity

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	sys "golang.org/x/sys/unix"

	"homenode/internal/action"
	"homenode/internal/journal"
	"homenode/internal/kernel"
	"homenode/internal/kernel/cgroup"
	"homenode/internal/kernel/procfs"
	"homenode/internal/kernel/unix"
	"homenode/internal/set"
)

// File is the only setting of a thread.
const File = "affinity"

const prefix = "thread "

// Setting names a thread's affinity in the journal.
func Setting(tid int) journal.Setting {
	return journal.Setting{Cgroup: prefix + strconv.Itoa(tid), File: File}
}

// TIDOf is the thread of a setting; false for those of cgroups.
func TIDOf(s journal.Setting) (int, bool) {
	text, ok := strings.CutPrefix(s.Cgroup, prefix)
	tid, err := strconv.Atoi(text)
	return tid, ok && s.File == File && err == nil && tid > 0
}

// Applier is the journal.Owner of threads' affinity, and hands on everything else.
type Applier struct {
	journal.Next
	root   kernel.Root
	calls  unix.Affinity
	layout cgroup.Layout
	noCPUs error         // no cpuset here
	clock  func() uint64 // ticks after boot
	buf    unix.Buffer
	mask   unix.CPUWords
}

// New acts on the running kernel: it needs the token that only kernel.Live makes. next is
// the owner of all other settings. Where there is none, why says the reason, and those
// settings stay as they are.
func New(live kernel.LiveToken, next journal.Owner, why error) (*Applier, error) {
	if !live.Valid() {
		return nil, fmt.Errorf("act on threads: only the running kernel can be acted upon (%w)", kernel.ErrNotSupported)
	}
	return newApplier(live.Root(), unix.LiveAffinity{}, next, why), nil
}

func newApplier(root kernel.Root, calls unix.Affinity, next journal.Owner, why error) *Applier {
	a := &Applier{Next: journal.Next{Behind: next, Why: fmt.Sprintf("cgroups cannot be acted upon here: %v", why)}, root: root, calls: calls, clock: ticks}
	var err error
	if a.layout, err = cgroup.Find(root); err == nil {
		err = a.layout.NeedCpuset()
	}
	a.noCPUs = err
	return a
}

// Plan lists the affinity that a step changes.
func (a *Applier) Plan(ctx context.Context, step action.Step) ([]journal.Change, error) {
	if step.Kind != action.PinThread {
		return a.Next.Plan(ctx, step)
	}
	if step.Thread <= 0 {
		return nil, fmt.Errorf("pin thread %d of %s: %w: want a thread's id", step.Thread, step.Workload, journal.ErrRefused)
	}
	c := journal.Change{Setting: Setting(step.Thread), ID: step.Start, Brief: true, Original: step.CPUs.IsEmpty()}
	if !c.Original {
		c.New, c.Release = step.CPUs.String(), step.Release
	}
	return []journal.Change{c}, nil
}

// Read reads a thread's affinity; its start time identifies the thread.
func (a *Applier) Read(s journal.Setting) (journal.Current, error) {
	tid, ok := TIDOf(s)
	if !ok {
		return a.Next.Read(s)
	}
	start, err := a.start(tid)
	if err != nil {
		return journal.Current{}, err
	}
	n, err := a.calls.Affinity(tid, &a.mask)
	if err != nil {
		return journal.Current{}, unix.Explain("read", s.String(), "", err)
	}
	return journal.Current{Value: set.FromCPUs(set.IDsOf(a.mask[:n])...).String(), ID: start}, nil
}

// start is when a thread started, in ticks after boot. The affinity of a zombie does not
// matter.
func (a *Applier) start(tid int) (uint64, error) {
	path := fmt.Sprintf("/proc/%d/stat", tid)
	data, err := a.buf.ReadFile(a.root.Path(path))
	if unix.Classify(err) == kernel.ErrGone {
		return 0, fmt.Errorf("thread %d has ended (%w)", tid, kernel.ErrGone)
	} else if err != nil {
		return 0, unix.Explain("read", path, "", err)
	}
	st, err := procfs.ParseTaskStat(data)
	switch {
	case err != nil:
		return 0, err
	case st.State == 'Z' || st.State == 'X':
		return 0, fmt.Errorf("thread %d has ended (%w)", tid, kernel.ErrGone)
	case st.KernelThread():
		return 0, fmt.Errorf("thread %d is the kernel's: %w", tid, journal.ErrRefused)
	}
	return st.Start, nil
}

// Same compares sets. The kernel leaves out CPUs that are offline, and since 6.2 those
// that the cpuset does not allow now. Where nothing would be left, it shows the whole
// cpuset (user_cpus_ptr in kernel/sched/core.c). What is left of a recorded set counts as
// that set: the rest returns when the CPUs do.
func (a *Applier) Same(s journal.Setting, current, recorded string) bool {
	tid, ok := TIDOf(s)
	if !ok {
		return a.Next.Same(s, current, recorded)
	}
	if current == recorded {
		return true
	}
	c, err1 := set.ParseCPUs(current)
	r, all, err2 := parse(recorded)
	if err1 != nil || err2 != nil || c.IsEmpty() {
		return false
	}
	online, err := a.online()
	if c == r || err == nil && c == r.Intersect(online) {
		return true
	}
	cpuset := a.cpusetOf(tid)
	left := r.Intersect(cpuset)
	return c == left || c == cpuset && (all || left.IsEmpty())
}

func (a *Applier) online() (set.CPUSet, error) {
	const file = "/sys/devices/system/cpu/online"
	data, err := a.buf.ReadFile(a.root.Path(file))
	if err != nil {
		return set.CPUSet{}, unix.Explain("read", file, "", err)
	}
	return set.ParseCPUs(string(data))
}

// Write sets a thread's affinity. The permit proves that it is on record.
func (a *Applier) Write(p journal.Permit, s journal.Setting, value string) error {
	tid, ok := TIDOf(s)
	if !ok {
		return a.Next.Write(p, s, value)
	}
	if !p.Valid() {
		return fmt.Errorf("set %s: %w: the journal gave no permit", s, journal.ErrRefused)
	}
	cpus, all, err := parse(value)
	if err != nil || cpus.IsEmpty() {
		return fmt.Errorf("set %s to %q: %w: want CPUs", s, value, errors.Join(journal.ErrRefused, err))
	}
	if all && a.widen(tid) {
		return nil
	}
	return refusal(s, cpus, a.calls.SetAffinity(tid, cpus.Words()))
}

// widen gives a thread every possible CPU, and reports whether the result is what its
// cpuset allows now.
func (a *Applier) widen(tid int) bool {
	n, err := a.calls.Affinity(tid, &a.mask)
	if err != nil {
		return false
	}
	all := make([]uint64, n)
	for i := range all {
		all[i] = ^uint64(0)
	}
	if a.calls.SetAffinity(tid, all) != nil {
		return false
	}
	n, err = a.calls.Affinity(tid, &a.mask)
	return err == nil && set.FromCPUs(set.IDsOf(a.mask[:n])...) == a.cpusetOf(tid)
}

// cpusetOf is what a thread's cpuset allows of the online CPUs. Where the cpuset is
// unknown, it is all online CPUs.
func (a *Applier) cpusetOf(tid int) set.CPUSet {
	online, err := a.online()
	if err != nil || a.noCPUs != nil {
		return online
	}
	id, err := a.layout.CpusetOf(tid, &a.buf)
	if err != nil {
		return online
	}
	e, err := a.layout.ReadEffective(id, &a.buf)
	if err != nil {
		return online
	}
	return e.CPUs.Intersect(online)
}

// refusal explains the kernel's error (sched_setaffinity in kernel/sched/core.c):
//
//	ESRCH   the thread has ended
//	EPERM   another user's, and no CAP_SYS_NICE
//	EINVAL  none of these CPUs is online and in its cpuset; or it is bound to one CPU
//	        for good (PF_NO_SETAFFINITY)
func refusal(s journal.Setting, cpus set.CPUSet, err error) error {
	if errors.Is(err, sys.EINVAL) {
		return fmt.Errorf("set %s to %s: %w: none of these CPUs is online and in its cpuset (%w; %w)", s, cpus, journal.ErrRefused, journal.ErrNeedsValue, err)
	}
	return unix.Explain("set", fmt.Sprintf("%s to %s", s, cpus), "CAP_SYS_NICE, or to be its user", err)
}

// Equivalent of an affinity of which nothing is left is everything that the cpuset
// allows.
func (a *Applier) Equivalent(s journal.Setting, original string) (string, error) {
	if tid, ok := TIDOf(s); ok {
		return whole + a.cpusetOf(tid).String(), nil
	}
	return a.Next.Equivalent(s, original)
}

// The kernel has one affinity for each thread. Only what Same handles overrules it, and
// it needs no memory of its own. What the owner behind knows is handed on (Next).
var _ journal.Link = (*Applier)(nil)
