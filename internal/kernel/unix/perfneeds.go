// SPDX-License-Identifier: Apache-2.0

package unix

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

const paranoidFile = "/proc/sys/kernel/perf_event_paranoid"

// PerfNeeds is what counting on a CPU needs, for an error that says that it is not
// permitted. Linux itself knows kernel.perf_event_paranoid of 2 at most
// (kernel/events/core.c); what Debian's kernels add above that lets nobody count but
// CAP_SYS_ADMIN, and 3 is their default.
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
