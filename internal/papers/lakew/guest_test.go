// SPDX-License-Identifier: Apache-2.0

package lakew

import (
	"testing"

	"homenode/internal/unit"
)

// The machine can hold every VM as a workload. Its amount of memory is unchanged, and no
// memory that is accessed belongs to one thread.
func TestGuests(t *testing.T) {
	m := torus()
	if !fits(&m) {
		t.Fatal("the paper's VMs have no room on its machine")
	}
	for _, p := range []population{first, second} {
		all := unit.Bytes(0)
		for _, s := range p.specs(1) {
			for _, problem := range s.Validate(m.Host) {
				t.Errorf("%s: %s", s.Name, problem)
			}
			held := s.Memory.Private + s.Memory.Shared
			if want := *s.Memory.PrivateAccesses; want != 0 || s.Memory.Shared*2 < held {
				t.Errorf("%s: private accesses %g, %v of %v shared", s.Name, want, s.Memory.Shared, held)
			}
			all += held
		}
		if all < 126*unit.GiB || all > 134*unit.GiB {
			t.Errorf("they hold %v, want an eighth of 1,024 GiB", all)
		}
	}
}
