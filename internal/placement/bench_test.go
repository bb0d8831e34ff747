// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"errors"
	"runtime"
	"syscall"
	"testing"

	"homenode/internal/machine"
	"homenode/internal/machine/machinetest"
)

// The recorded eight nodes, as the paper's: their important placements, CPU time of the thread.
// Other load on the host disturbs it less than the time by the clock.
func BenchmarkEightNodes(b *testing.B) {
	m, err := machine.ParseSysfs(machinetest.Unpack(b, machinetest.Dir(b)+"/64amd64-4p2n4ca2co-opteron6272.tar.bz2"), "recorded:opteron")
	if errors.Is(err, machine.ErrNoCPU) {
		b.Fatal(err)
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	begin := threadTime(b)
	for b.Loop() {
		if _, err := Important(m, Options{VCPUs: 16}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric((threadTime(b)-begin)/float64(b.N), "cpu-ns/op")
}

// threadTime is the CPU time of this thread in ns.
func threadTime(b *testing.B) float64 {
	const thread = 1 // RUSAGE_THREAD
	var u syscall.Rusage
	if err := syscall.Getrusage(thread, &u); err != nil {
		b.Fatal(err)
	}
	return float64(u.Utime.Nano() + u.Stime.Nano())
}
