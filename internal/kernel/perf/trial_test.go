// SPDX-License-Identifier: Apache-2.0

package perf

import (
	"errors"
	"strings"
	"testing"

	sys "golang.org/x/sys/unix"

	"homenode/internal/event"
	"homenode/internal/kernel/kerneltest"
)

// Each event of a count is opened on the one CPU, counts nothing, and is closed before the
// next; the first refusal is the answer.
func TestTry(t *testing.T) {
	table := Detect(kerneltest.Tree(t, kerneltest.CPUTree("sapphire-rapids"))).Known
	ways := table.Readings[event.LocalLoads].Counts
	f := newUncore()
	opened := 0
	f.refuse = func(attr *sys.PerfEventAttr, cpu int) error {
		if opened++; attr.Bits&sys.PerfBitDisabled == 0 || cpu != 3 || len(f.open) != 0 {
			t.Errorf("%+v on CPU %d, %d open", attr, cpu, len(f.open))
		}
		return withoutRegisters(attr, cpu)
	}
	if err := Try(f, ways[0], 3); !errors.Is(err, sys.ENXIO) || !strings.Contains(err.Error(), "register") {
		t.Errorf("%v", err)
	}
	if err := Try(f, ways[1], 3); err != nil {
		t.Error(err)
	}
	if sum := table.Readings[event.UncoreRequests].Counts[0]; Try(f, sum, 3) != nil || opened < 3 || len(f.open) != 0 {
		t.Errorf("%d opened, %d left open", opened, len(f.open))
	}
}

func TestRefusal(t *testing.T) {
	for errno, want := range map[error]string{
		sys.EACCES: "not permitted: it needs CAP_PERFMON", sys.EPERM: "not permitted", sys.ENOENT: "no PMU", sys.ENOSYS: "container's filter", sys.E2BIG: "argument list too long",
	} {
		if err := Refusal(errno); !errors.Is(err, errno) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: want %q", err, want)
		}
	}
}
