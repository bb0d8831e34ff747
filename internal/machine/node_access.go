// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"fmt"
	"math"
	"strconv"

	"homenode/internal/set"
	"homenode/internal/unit"
)

// parseLatency reads
//
//	/sys/devices/system/node/node2/access0/initiators/read_latency   26
//
// Unit: ns (Documentation/admin-guide/mm/numaperf.rst). 0 is what the kernel
// prints when the HMAT has no value: unknown. Since 5.2.
func parseLatency(text string) (unit.Opt[int], error) {
	n, err := parseUint(text, math.MaxInt32)
	return unit.OptOf(int(n), err == nil && n > 0), err
}

// parseBandwidth reads
//
//	/sys/devices/system/node/node2/access0/initiators/read_bandwidth   131072
//
// Unit: MiB/s (the same document); 0 is unknown. Since 5.2.
func parseBandwidth(text string) (unit.Opt[unit.Bytes], error) {
	n, err := parseUint(text, math.MaxInt64/int64(unit.MiB))
	return unit.OptOf(unit.Bytes(n)*unit.MiB, err == nil && n > 0), err
}

// parseUint reads a file of one decimal number up to most.
func parseUint(text string, most int64) (int64, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	switch {
	case !isDigits(text):
		return 0, fieldError(1, 1, text)
	case err != nil || n > most:
		return 0, fmt.Errorf("line 1, field 1 %s: more than %d", clip(text), most)
	}
	return n, nil
}

// access reads what HMAT says of a node's memory, by class of initiator:
//
//	/sys/devices/system/node/node2/access1/initiators/{read,write}_{latency,bandwidth}
//	/sys/devices/system/node/node2/access1/initiators/node0 -> ../../../node0
//
// Class 0 (5.2) has the best initiators of any kind, class 1 (5.10) the best among CPUs.
// A class without an initiator and without a number is left out.
func (t *tree) access(node int, classes []int) []Access {
	var all []Access
	for _, class := range classes {
		dir := nodePath(node, fmt.Sprintf("access%d/initiators", class))
		a := Access{
			Class:          class,
			ReadLatency:    load(t, dir+"/read_latency", parseLatency).Or(unit.None[int]()),
			WriteLatency:   load(t, dir+"/write_latency", parseLatency).Or(unit.None[int]()),
			ReadBandwidth:  load(t, dir+"/read_bandwidth", parseBandwidth).Or(unit.None[unit.Bytes]()),
			WriteBandwidth: load(t, dir+"/write_bandwidth", parseBandwidth).Or(unit.None[unit.Bytes]()),
		}
		for _, id := range t.ids(dir, "node") {
			if id <= set.MaxNode {
				a.Initiators = a.Initiators.With(id)
			}
		}
		if a != (Access{Class: class}) {
			all = append(all, a)
		}
	}
	return all
}
