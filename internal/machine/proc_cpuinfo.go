// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"errors"
	"fmt"
	"slices"
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
// The zero family where there are no such lines, as on every architecture but x86. A text
// without any line that a kernel writes is malformed: nothing follows from what it lacks.
func parseCPUFamily(text string) (cpuFamily, error) {
	var f cpuFamily
	known := false
	for i, line := range strings.Split(text, "\n") {
		key, value, _ := strings.Cut(line, ":")
		key, value = trim(key), trim(value)
		known = known || slices.Contains(cpuinfoKeys, key) && value != ""
		switch key {
		case "vendor_id":
			if !slices.Contains(cpuVendors, value) {
				return cpuFamily{}, fmt.Errorf("line %d: vendor_id %s: no vendor of CPUs that Linux knows", i+1, clip(value))
			}
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
	switch {
	case !known:
		return cpuFamily{}, errors.New("line 1: no line of a CPU's")
	case f.vendor != "" && !strings.HasPrefix(f.vendor, "IBM/"):
		return cpuFamily{}, errors.New("no line \"cpu family\"")
	}
	return f, nil
}

// cpuinfoKeys start the description of a CPU, on one architecture or another
// (arch/*/kernel: show_cpuinfo).
var cpuinfoKeys = []string{"processor", "Processor", "vendor_id", "cpu", "cpu model", "system type", "isa", "CPU implementer", "hart"}

// cpuVendors are what x86 kernels print (c_vendor, c_ident in arch/x86/kernel/cpu), and s390.
var cpuVendors = []string{"GenuineIntel", "AuthenticAMD", "HygonGenuine", "CentaurHauls", "Shanghai", "CyrixInstead",
	"GenuineTMx86", "TransmetaCPU", "Geode by NSC", "NexGenDriven", "UMC UMC UMC", "RiseRiseRise", "SiS SiS SiS",
	"Vortex86 SoC", "IBM/S390", "unknown"}

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
