// SPDX-License-Identifier: Apache-2.0

package unix

import (
	"fmt"
	"slices"
	"strings"
)

// MemPolicy is a memory policy, spelled as the kernel does; "" is none.
type MemPolicy string

// The policies of set_mempolicy(2), mbind(2).
const (
	PolicyLocal              MemPolicy = "local"               // the node of the CPU that touches first
	PolicyBind               MemPolicy = "bind"                // these nodes and no others
	PolicyPreferred          MemPolicy = "preferred"           // this node while it has memory
	PolicyPreferredMany      MemPolicy = "preferred-many"      // these nodes while they have memory
	PolicyInterleave         MemPolicy = "interleave"          // page by page around these nodes
	PolicyWeightedInterleave MemPolicy = "weighted-interleave" // by the weights in /sys/kernel/mm/mempolicy
)

// modes are the numbers in include/uapi/linux/mempolicy.h, which x/sys does not
// all have, and the kernel that has them first.
var modes = []struct {
	policy  MemPolicy
	number  int
	since   string // "" = older than any that we run on
	numactl string
}{
	{PolicyLocal, 4, "", "--localalloc"},
	{PolicyBind, 2, "", "--membind"},
	{PolicyPreferred, 1, "", "--preferred"},
	{PolicyPreferredMany, 5, "5.15", "--preferred-many"},
	{PolicyInterleave, 3, "", "--interleave"},
	{PolicyWeightedInterleave, 6, "6.9", "--weighted-interleave"},
}

// MemPolicies are all policies.
func MemPolicies() (all []MemPolicy) {
	for _, m := range modes {
		all = append(all, m.policy)
	}
	return all
}

// MemPolicyNames are all names, for help and messages.
func MemPolicyNames() string {
	var names []string
	for _, p := range MemPolicies() {
		names = append(names, string(p))
	}
	return strings.Join(names[:len(names)-1], ", ") + " or " + names[len(names)-1]
}

// ParseMemPolicy reads a policy's name; "" is none.
func ParseMemPolicy(text string) (MemPolicy, error) {
	if p := MemPolicy(text); p == "" || p.Known() {
		return p, nil
	}
	return "", fmt.Errorf("policy %q: no such policy: want %s", text, MemPolicyNames())
}

// Known says that it is one of All.
func (p MemPolicy) Known() bool { return slices.Contains(MemPolicies(), p) }

// TakesNodes says that it is about nodes that are named.
func (p MemPolicy) TakesNodes() bool { return p.Known() && p != PolicyLocal }

// Number is the kernel's; 0, MPOL_DEFAULT, of none.
func (p MemPolicy) Number() int {
	for _, m := range modes {
		if m.policy == p {
			return m.number
		}
	}
	return 0
}

// Since is the first kernel that has it; "" = older than any that we run on.
func (p MemPolicy) Since() string {
	for _, m := range modes {
		if m.policy == p {
			return m.since
		}
	}
	return ""
}

// Numactl is numactl(8)'s flag for it.
func (p MemPolicy) Numactl() string {
	for _, m := range modes {
		if m.policy == p {
			return m.numactl
		}
	}
	return ""
}
