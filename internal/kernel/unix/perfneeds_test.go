// SPDX-License-Identifier: Apache-2.0

package unix

import (
	"strings"
	"testing"
)

// Above 2, which only some kernels have, CAP_PERFMON is not enough, and the error says
// so.
func TestPerfNeeds(t *testing.T) {
	for paranoid, more := range map[int]bool{-1: false, 0: false, 2: false, 3: true, 4: true} {
		if got := perfNeeds(paranoid); !strings.HasPrefix(got, "CAP_PERFMON ") || strings.Contains(got, "set it to 2") != more {
			t.Errorf("at %d: %s", paranoid, got)
		}
	}
	if !strings.HasPrefix(PerfNeeds(), "CAP_PERFMON ") {
		t.Error(PerfNeeds())
	}
}
