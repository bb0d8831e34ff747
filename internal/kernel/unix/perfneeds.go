// SPDX-License-Identifier: Apache-2.0

package unix

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

const paranoidFile = "/proc/sys/kernel/perf_event_paranoid"

// PerfNeeds is what counting on a CPU needs, for an error about a missing permission.
// Linux itself has values of kernel.perf_event_paranoid up to 2 (kernel/events/core.c).
// With the higher values that Debian's kernels add, only CAP_SYS_ADMIN may count, and 3
// is their default.
func PerfNeeds() string {
	text, err := os.ReadFile(paranoidFile)
	if err != nil {
		return perfNeeds(0)
	}
	level, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		level = 0
	}
	return perfNeeds(level)
}

func perfNeeds(paranoid int) string {
	const need = "CAP_PERFMON (CAP_SYS_ADMIN before Linux 5.8)"
	if paranoid <= 2 {
		return need
	}
	return fmt.Sprintf("%s, and kernel.perf_event_paranoid is %d, at which Debian's and some other kernels let only CAP_SYS_ADMIN count: set it to 2 (deploy/sysctl.d/homenode.conf)", need, paranoid)
}
