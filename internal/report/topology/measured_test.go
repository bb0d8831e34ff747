// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"testing"

	"homenode/internal/profile"
	"homenode/internal/set"
	"homenode/internal/unit"
)

// What a part of the machine did is not shown as the machine's.
func TestMeasuredWithAPart(t *testing.T) {
	p := profile.Profile{How: unit.HowMeasured, Machine: profile.Fingerprint{CPUs: 4, Nodes: []int{0, 1}}}
	for want, used := range map[string]set.CPUSet{
		"measured": set.FromCPUs(0, 1, 2, 3), "measured with CPUs 0-1 of 4 only": set.FromCPUs(0, 1),
	} {
		p.UsedCPUs = used
		if got := (facts{profile: &p}).profileHow(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
