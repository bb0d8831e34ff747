// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"fmt"
	"strconv"
	"strings"

	"homenode/internal/unit"
)

// cpuFamily is the make of the first CPU.
type cpuFamily struct {
	vendor string
	number int
}

// parseCPUFamily reads, of the first CPU,
//
//	/proc/cpuinfo   vendor_id	: AuthenticAMD
//	                cpu family	: 21
//
// The zero family when there are no such lines, as on every architecture but x86.
func parseCPUFamily(text string) (cpuFamily, error) {
	var f cpuFamily
	for i, line := range strings.Split(text, "\n") {
		key, value, _ := strings.Cut(line, ":")
		switch key, value = trim(key), trim(value); key {
		case "vendor_id":
			f.vendor = value
		case "cpu family":
			n, err := strconv.ParseUint(value, 10, 16)
			if err != nil {
				return cpuFamily{}, fmt.Errorf("line %d: cpu family %s: want a number", i+1, clip(value))
			}
			f.number = int(n)
			return f, nil
		}
	}
	return f, nil
}

// family is unknown when the tree has no /proc/cpuinfo.
func (t *tree) family() unit.Opt[cpuFamily] {
	text, ok := t.readHead("proc/cpuinfo")
	if !ok {
		return unit.None[cpuFamily]()
	}
	f, err := parseCPUFamily(text)
	t.malformed("proc/cpuinfo", err)
	return unit.OptOf(f, err == nil)
}
