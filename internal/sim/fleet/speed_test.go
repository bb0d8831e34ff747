// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"testing"

	"homenode/internal/sim/memsys"
)

// realFleet is a fleet of real worlds.
func realFleet(servers, minutes int) Config {
	c := DefaultConfig()
	c.Machine, c.System = memsys.DualSkylake()
	c.Size = Size{Servers: servers, Minutes: minutes, Workloads: 20}
	c.Warmup = 0
	return c
}

// An hour of a server: ns/op / 60 is the time of a window.
func BenchmarkServerHour(b *testing.B) {
	for name, share := range map[string]float64{"off": 0, "on": 1} {
		b.Run(name, func(b *testing.B) {
			c := realFleet(1, 60*max(b.N, 2))
			c.Share = share
			if _, err := Run(b.Context(), c, nil, nil); err != nil {
				b.Fatal(err)
			}
		})
	}
}
