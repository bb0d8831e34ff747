// SPDX-License-Identifier: Apache-2.0

package affinity

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	sys "golang.org/x/sys/unix"

	"homenode/internal/journal"
	"homenode/internal/kernel/unix"
	"homenode/internal/set"
)

// whole marks an original that was everything its cpuset allowed: "*0-5". That can be
// seen only when it is recorded: later the cpuset may be another.
const whole = "*"

// parse reads a recorded affinity.
func parse(recorded string) (cpus set.CPUSet, all bool, err error) {
	text, all := strings.CutPrefix(recorded, whole)
	cpus, err = set.ParseCPUs(text)
	return cpus, all, err
}

// ticks is the present time in the unit of starts in /proc/PID/stat: hundredths of a
// second after boot (USER_HZ), suspend included.
func ticks() uint64 {
	var now sys.Timespec
	if err := sys.ClockGettime(sys.CLOCK_BOOTTIME, &now); err != nil {
		return 1 // any thread may have started since
	}
	return max(1, uint64(now.Nano())/1e7)
}

// Clock is now, as the start of a thread.
func (a *Applier) Clock(s journal.Setting) uint64 {
	if _, ok := TIDOf(s); ok {
		return a.clock()
	}
	return a.Next.Clock(s)
}

// Original of a thread that may run wherever its cpuset allows is recorded as exactly
// that.
func (a *Applier) Original(s journal.Setting, value string) string {
	tid, ok := TIDOf(s)
	if !ok {
		return a.Next.Original(s, value)
	}
	if cpus, err := set.ParseCPUs(value); err == nil && cpus == a.cpusetOf(tid) {
		return whole + value
	}
	return value
}

// beingStarted is how long a new thread may have its parent's affinity without being
// visible (copy_process in kernel/fork.c): some 10 µs, or some 10 ms if its parent has to
// wait for a CPU meanwhile.
const beingStarted = 50 * time.Millisecond

// Inherited checks all threads of a process, or in a cgroup. Reading a mask takes a fraction
// of a microsecond. The start is read only for threads that have one of the family's
// values.
func (a *Applier) Inherited(f journal.Family) ([]journal.Inherited, error) {
	own, err := a.inheritedThreads(f)
	theirs, err2 := a.Next.Inherited(f)
	return append(own, theirs...), errors.Join(err, err2)
}

func (a *Applier) inheritedThreads(f journal.Family) (all []journal.Inherited, err error) {
	values := make([]set.CPUSet, len(f.Values))
	for i, v := range f.Values {
		if values[i], _, err = parse(v); err != nil {
			return nil, err
		}
	}
	if len(values) == 0 {
		return nil, nil
	}
	if f.Last {
		time.Sleep(beingStarted)
	}
	tids, err := a.tasks(f.Workload)
	if err != nil {
		return nil, err
	}
	var words []uint64
	which := -1
	for _, tid := range tids {
		n, err := a.calls.Affinity(tid, &a.mask)
		if err != nil {
			continue // it has ended
		}
		if !slices.Equal(words, a.mask[:n]) { // most have the same
			words = append(words[:0], a.mask[:n]...)
			which = a.inherited(tid, set.FromCPUs(set.IDsOf(words)...), f.Values, values)
		}
		if which < 0 {
			continue
		}
		s := Setting(tid)
		start, err := a.start(tid)
		if err == nil && start >= f.Since && !f.Known(s, start) {
			all = append(all, journal.Inherited{Setting: s, ID: start, Value: f.Values[which]})
		}
	}
	return all, nil
}

// inherited finds the value that a thread has, in full or as far as its cpuset allows.
func (a *Applier) inherited(tid int, cpus set.CPUSet, texts []string, values []set.CPUSet) int {
	if i := slices.Index(values, cpus); i >= 0 {
		return i
	}
	for i, v := range values {
		if cpus.SubsetOf(v) && a.Same(Setting(tid), cpus.String(), texts[i]) {
			return i
		}
	}
	return -1
}

// tasks are the threads of a workload, "pid:12" or "/demo".
func (a *Applier) tasks(workload string) (tids []int, err error) {
	pid, ok := strings.CutPrefix(workload, "pid:")
	if !ok {
		if a.noCPUs != nil {
			return nil, a.noCPUs
		}
		return a.layout.TIDs(nil, workload, &a.buf)
	}
	dir := fmt.Sprintf("/proc/%s/task", pid)
	entries, err := os.ReadDir(a.root.Path(dir))
	if err != nil {
		return nil, unix.Explain("read", dir, "", err)
	}
	for _, e := range entries {
		if tid, err := strconv.Atoi(e.Name()); err == nil {
			tids = append(tids, tid)
		}
	}
	return tids, nil
}
