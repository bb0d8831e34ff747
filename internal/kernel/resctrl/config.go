// SPDX-License-Identifier: Apache-2.0

package resctrl

import (
	"homenode/internal/kernel/unix"
	"homenode/internal/unit"
)

// Config of a Monitor. The zero Config reads what is there and makes no group.
type Config struct {
	Off bool
	// Live has groups made. Only a process that holds the journal's lock sets it: two
	// homenodes would remove each other's groups.
	Live unix.Live
	// Most groups at a time; 0: as many as there are RMIDs for. Each group costs an
	// interrupt to a CPU of each cache for each of its files in each round.
	Most int
	// Reserve is the number of RMIDs left to others; negative: none.
	Reserve int
	// Turn is the number of rounds that a group stays once others wait. The first brings
	// no figure, so 2 would waste half of the RMIDs.
	Turn int
	// MostRate is the bytes/s that one cache's controllers and links can carry; anything
	// higher is not a valid figure.
	MostRate unit.Bytes
	// Service names a workload's service, and reports whether it is approved; nil: none
	// is.
	Service func(id string) (name string, approved bool)
}

func (c Config) withDefaults() Config {
	if c.Turn <= 0 {
		c.Turn = 6
	}
	if c.Reserve == 0 {
		c.Reserve = 2
	}
	c.Reserve = max(c.Reserve, 0)
	if c.MostRate <= 0 {
		c.MostRate = 2e12 // twice what a package with HBM can; 12 channels of DDR5-8800 carry 0.84e12
	}
	if c.Service == nil {
		c.Service = func(string) (string, bool) { return "", false }
	}
	return c
}
