// SPDX-License-Identifier: Apache-2.0

package procfs

import (
	"bytes"

	"homenode/internal/unit"
)

// Count is a counter that the kernel may not have.
type Count = unit.Opt[uint64]

// Vmstat is /proc/vmstat's counters of NUMA balancing and of swapping since boot.
type Vmstat struct {
	PTEUpdates, HintFaults, HintLocal, PagesMigrated, MigrateFailed Count
	SwapIn, SwapOut                                                 Count // pages
}

// ParseVmstat reads /proc/vmstat (the numa_ lines since 3.8, with
// CONFIG_NUMA_BALANCING; pswp ones since 2.6.0), in pages and faults:
//
//	numa_pte_updates 120
//	pgmigrate_fail 0
func ParseVmstat(data []byte) (Vmstat, error) {
	var v Vmstat
	err := counters("/proc/vmstat", data, func(key []byte) *Count {
		switch string(key) {
		case "numa_pte_updates":
			return &v.PTEUpdates
		case "numa_hint_faults":
			return &v.HintFaults
		case "numa_hint_faults_local":
			return &v.HintLocal
		case "numa_pages_migrated":
			return &v.PagesMigrated
		case "pgmigrate_fail":
			return &v.MigrateFailed
		case "pswpin":
			return &v.SwapIn
		case "pswpout":
			return &v.SwapOut
		}
		return nil
	})
	if err != nil {
		return Vmstat{}, err
	}
	return v, nil
}

// counters reads "name value" lines into those counters that are wanted.
func counters(file string, data []byte, want func(key []byte) *Count) error {
	for n, line := range lines(data) {
		key, rest := nextField(line)
		into := want(key)
		if into == nil {
			continue
		}
		v, err := number(bytes.TrimSpace(rest))
		if err != nil {
			return malformed(file, n, line, err)
		}
		*into = unit.Some(v)
	}
	return nil
}

// Numastat is a node's counters since boot, in pages.
type Numastat struct {
	Hit, Miss, Foreign, InterleaveHit, LocalNode, OtherNode Count
}

// ParseNumastat reads /sys/devices/system/node/nodeN/numastat (since 2.6.9):
//
//	numa_hit 73731356
//	numa_miss 0
func ParseNumastat(data []byte) (Numastat, error) {
	var s Numastat
	err := counters("node/numastat", data, func(key []byte) *Count {
		switch string(key) {
		case "numa_hit":
			return &s.Hit
		case "numa_miss":
			return &s.Miss
		case "numa_foreign":
			return &s.Foreign
		case "interleave_hit":
			return &s.InterleaveHit
		case "local_node":
			return &s.LocalNode
		case "other_node":
			return &s.OtherNode
		}
		return nil
	})
	if err != nil {
		return Numastat{}, err
	}
	return s, nil
}

// ParseCount reads a file of one number, such as nr_hugepages.
func ParseCount(file string, data []byte) (uint64, error) {
	n, err := number(bytes.TrimSpace(data))
	if err != nil {
		return 0, malformed(file, 1, data, err)
	}
	return n, nil
}
