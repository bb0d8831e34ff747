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

// mode is how the kernel and numactl(8) call a policy.
type mode struct {
	policy  MemPolicy
	number  int    // in include/uapi/linux/mempolicy.h; x/sys does not have all of them
	since   string // first kernel with it; "" = older than any kernel that we support
	numactl string // its flag
}

var modes = []mode{
	{PolicyLocal, 4, "", "--localalloc"},
	{PolicyBind, 2, "", "--membind"},
	{PolicyPreferred, 1, "", "--preferred"},
	{PolicyPreferredMany, 5, "5.15", "--preferred-many"},
	{PolicyInterleave, 3, "", "--interleave"},
	{PolicyWeightedInterleave, 6, "6.9", "--weighted-interleave"},
}

// MemPolicies returns all policies.
func MemPolicies() (all []MemPolicy) {
	for _, m := range modes {
		all = append(all, m.policy)
	}
	return all
}

// MemPolicyNames lists all names, for help and messages.
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

// Known says that it is one of MemPolicies.
func (p MemPolicy) Known() bool { return slices.Contains(MemPolicies(), p) }

// TakesNodes says that the policy names nodes.
func (p MemPolicy) TakesNodes() bool { return p.Known() && p != PolicyLocal }

// mode is the zero mode for none: 0 is MPOL_DEFAULT.
func (p MemPolicy) mode() mode {
	for _, m := range modes {
		if m.policy == p {
			return m
		}
	}
	return mode{}
}

// Number is the kernel's number of the policy; 0, MPOL_DEFAULT, for none.
func (p MemPolicy) Number() int { return p.mode().number }

// Since is the first kernel with the policy; "" = older than any kernel that we support.
func (p MemPolicy) Since() string { return p.mode().since }

// Numactl is the policy's flag of numactl(8).
func (p MemPolicy) Numactl() string { return p.mode().numactl }
