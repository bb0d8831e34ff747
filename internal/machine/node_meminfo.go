// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"homenode/internal/unit"
)

// MaxMemory bounds a node's memory: no CPU of today has more than 52 bits of physical
// address (Intel SDM 3A 4.1.4; Arm FEAT_LPA). The sum over all nodes there can be fits 63
// bits.
const MaxMemory unit.Bytes = 1 << 52

var errNoMemTotal = errors.New("no MemTotal line")

// parseMemTotal reads MemTotal from
//
//	/sys/devices/system/node/node0/meminfo    Node 0 MemTotal:       131732940 kB
//	                                          Node 0 MemFree:        130000000 kB
//	/proc/meminfo                             MemTotal:       527031224 kB
//
// Unit: kB means KiB here. Node meminfo since 2.6.0. What the kernel manages:
// less than the DIMMs hold; 0 for a node that has only a cache or a device.
func parseMemTotal(text string) (unit.Bytes, error) {
	for i, line := range strings.Split(text, "\n") {
		fields := strings.Fields(line)
		if len(fields) > 2 && fields[0] == "Node" {
			fields = fields[2:]
		}
		if len(fields) > 0 && fields[0] == "MemTotal:" {
			return parseKiB(i+1, fields[1:])
		}
	}
	return 0, errNoMemTotal
}

// parseKiB reads ["131732940", "kB"].
func parseKiB(line int, fields []string) (unit.Bytes, error) {
	if len(fields) != 2 || fields[1] != "kB" || !isDigits(fields[0]) {
		return 0, fmt.Errorf("line %d: MemTotal %s: want a number and kB", line, clip(strings.Join(fields, " ")))
	}
	n, err := strconv.ParseInt(fields[0], 10, 64)
	if err != nil || n > int64(MaxMemory/unit.KiB) {
		return 0, fmt.Errorf("line %d: MemTotal %s: more than %v", line, clip(fields[0]), MaxMemory)
	}
	return unit.Bytes(n) * unit.KiB, nil
}
