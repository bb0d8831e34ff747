// SPDX-License-Identifier: Apache-2.0

package mempolicy

import (
	"fmt"
	"slices"
	"strings"
)

// Policy is a memory policy, spelled as the kernel does; "" is none.
type Policy string

// The policies of set_mempolicy(2), mbind(2).
const (
	Local              Policy = "local"               // the node of the CPU that touches first
	Bind               Policy = "bind"                // these nodes and no others
	Preferred          Policy = "preferred"           // this node while it has memory
	PreferredMany      Policy = "preferred-many"      // these nodes while they have memory
	Interleave         Policy = "interleave"          // page by page around these nodes
	WeightedInterleave Policy = "weighted-interleave" // by the weights in /sys/kernel/mm/mempolicy
)

// modes are the numbers in include/uapi/linux/mempolicy.h, not all of which x/sys has,
// and the first kernel with each.
var modes = []struct {
	policy  Policy
	number  int
	since   string // "" = older than any kernel that we support
	numactl string
}{
	{Local, 4, "", "--localalloc"},
	{Bind, 2, "", "--membind"},
	{Preferred, 1, "", "--preferred"},
	{PreferredMany, 5, "5.15", "--preferred-many"},
	{Interleave, 3, "", "--interleave"},
	{WeightedInterleave, 6, "6.9", "--weighted-interleave"},
}

// All are all policies.
func All() (all []Policy) {
	for _, m := range modes {
		all = append(all, m.policy)
	}
	return all
}

// Names are all names, for help and messages.
func Names() string {
	var names []string
	for _, p := range All() {
		names = append(names, string(p))
	}
	return strings.Join(names[:len(names)-1], ", ") + " or " + names[len(names)-1]
}

// Parse reads a policy's name; "" is none.
func Parse(text string) (Policy, error) {
	if p := Policy(text); p == "" || p.Known() {
		return p, nil
	}
	return "", fmt.Errorf("policy %q: no such policy: want %s", text, Names())
}

// Known says that it is in All.
func (p Policy) Known() bool { return slices.Contains(All(), p) }

// TakesNodes says that the policy names nodes.
func (p Policy) TakesNodes() bool { return p.Known() && p != Local }

// Number is the kernel's number; 0, MPOL_DEFAULT, for none.
func (p Policy) Number() int {
	for _, m := range modes {
		if m.policy == p {
			return m.number
		}
	}
	return 0
}

// Since is the first kernel with the policy; "" = older than any kernel that we
// support.
func (p Policy) Since() string {
	for _, m := range modes {
		if m.policy == p {
			return m.since
		}
	}
	return ""
}

// Numactl is numactl(8)'s flag for it.
func (p Policy) Numactl() string {
	for _, m := range modes {
		if m.policy == p {
			return m.numactl
		}
	}
	return ""
}
