// SPDX-License-Identifier: Apache-2.0

package perf

import (
	"errors"
	"fmt"

	sys "golang.org/x/sys/unix"

	"homenode/internal/event"
	"homenode/internal/kernel/unix"
)

// Opener opens events of all that runs on a CPU: unix.LivePerf, or a test's fake.
type Opener interface {
	OpenTask(attr *sys.PerfEventAttr, pid, cpu, group int) (int, error)
	Close(fd int)
}

// Try opens the events of a count on a CPU, one at a time, and closes each at once. That
// takes the same permission as counting a cgroup. It does not show that all fit the PMU's
// counters together: the agent opens a group, and the kernel may share counters.
func Try(calls Opener, count event.Count, cpu int) error {
	for _, e := range count.Events {
		attr := Attr(Event{Type: e.Type, Config: e.Config, Config1: e.Code.Config1}, false)
		attr.Bits |= sys.PerfBitDisabled
		fd, err := calls.OpenTask(&attr, -1, cpu, -1)
		if err != nil {
			return Refusal(err)
		}
		calls.Close(fd)
	}
	return nil
}

// Refusal says what the kernel's refusal of an event means (perf_event_open(2)).
func Refusal(err error) error {
	for _, r := range refusals {
		if errors.Is(err, r.errno) {
			return fmt.Errorf("%s (%w)", r.means, err)
		}
	}
	if errors.Is(unix.Classify(err), unix.ErrNotPermitted) {
		return fmt.Errorf("not permitted: it needs %s (%w)", unix.PerfNeeds(), err)
	}
	return err
}

var refusals = []struct {
	errno error
	means string
}{
	{sys.ENOENT, "no PMU of this host takes it; a VM without a PMU answers so"},
	{sys.EOPNOTSUPP, "the PMU of this host cannot count it"},
	{sys.ENXIO, "the register that it needs is missing; a hypervisor mostly hides it"},
	{sys.EINVAL, "the PMU does not know its code; a hypervisor or an old kernel may hide it"},
	{sys.EBUSY, "another program has the counter to itself"},
	{sys.ENODEV, "the CPU or its PMU is offline"},
	{sys.ENOSYS, "this kernel, or the container's filter of system calls, has no perf_event_open"},
	{sys.EMFILE, "this process has too many open files: raise LimitNOFILE (ulimit -n)"},
}
