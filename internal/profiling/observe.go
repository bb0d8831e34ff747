// SPDX-License-Identifier: Apache-2.0

package profiling

import (
	"time"

	"homenode/internal/unit"
	"homenode/internal/window"
)

// Observe takes the features of one window of a workload.
func Observe(wl *window.Workload, length time.Duration) (f Features) {
	seen := window.FeaturesOf(*wl, length)
	f.MBW = pointer(seen.MBW.Get())
	f.MSR, f.NPMR, f.RMBR = ratio(seen.MSR), ratio(seen.NPMR), ratio(seen.RMBR)
	f.CPU = pointer(wl.CPU.Get())
	anon, okA := window.SumBytes(wl.AnonByNode)
	file, okF := window.SumBytes(wl.FileByNode)
	f.RSS = pointer(float64(anon+file), okA && okF)
	instructions, okI := wl.Instructions.Get()
	cycles, okC := wl.Cycles.Get()
	f.IPC = pointer(float64(instructions)/float64(max(cycles, 1)), okI && okC && cycles > 0)
	loads, okL := wl.Loads()
	f.LLCMPKI = pointer(1000*loads/float64(max(instructions, 1)), okI && okL && instructions > 0)
	return f
}

func ratio(v unit.Value[unit.Ratio]) *float64 {
	r, ok := v.Get()
	return pointer(float64(r), ok)
}

func pointer(v float64, ok bool) *float64 {
	if !ok {
		return nil
	}
	return &v
}
