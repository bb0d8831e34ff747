// SPDX-License-Identifier: Apache-2.0

package launch

import (
	"errors"
	"fmt"
	"strings"

	sys "golang.org/x/sys/unix"
)

// Policy is a memory policy, spelled as the kernel does; "" leaves what is set.
type Policy string

// The policies of set_mempolicy(2).
const (
	Local              Policy = "local"               // the node of the CPU that touches first
	Bind               Policy = "bind"                // these nodes and no others
	Preferred          Policy = "preferred"           // this node while it has memory
	PreferredMany      Policy = "preferred-many"      // these nodes while they have memory
	Interleave         Policy = "interleave"          // page by page around these nodes
	WeightedInterleave Policy = "weighted-interleave" // by the weights in /sys/kernel/mm/mempolicy
)

// modes are the numbers in include/uapi/linux/mempolicy.h, which x/sys does not
// all have, and the kernel that has them first.
var modes = []struct {
	policy  Policy
	number  int
	since   string // "" = older than any that we run on
	numactl string
}{
	{Local, 4, "", "--localalloc"},
	{Bind, 2, "", "--membind"},
	{Preferred, 1, "", "--preferred"},
	{PreferredMany, 5, "5.15", "--preferred-many"},
	{Interleave, 3, "", "--interleave"},
	{WeightedInterleave, 6, "6.9", "--weighted-interleave"},
}

// Policies are all names, for help and messages.
func Policies() string {
	var names []string
	for _, m := range modes {
		names = append(names, string(m.policy))
	}
	return strings.Join(names[:len(names)-1], ", ") + " or " + names[len(names)-1]
}

// ParsePolicy reads a policy's name; "" is none.
func ParsePolicy(text string) (Policy, error) {
	for _, m := range modes {
		if text == string(m.policy) {
			return m.policy, nil
		}
	}
	if text == "" {
		return "", nil
	}
	return "", fmt.Errorf("policy %q: there is no such: want %s", text, Policies())
}

// number is the kernel's; 0, MPOL_DEFAULT, of none.
func (p Policy) number() int {
	for _, m := range modes {
		if m.policy == p {
			return m.number
		}
	}
	return 0
}

// refused turns what the kernel said to a policy of nodes that exist, and that
// this process may use, into a sentence. EINVAL then means that it does not know
// the mode (sanitize_mpol_flags in mm/mempolicy.c).
func refused(p Policy, err error) error {
	for _, m := range modes {
		if m.policy == p && m.since != "" && errors.Is(err, sys.EINVAL) {
			return fmt.Errorf("set policy %s: this kernel, %s, does not have it: Linux has it since %s", p, release(), m.since)
		}
	}
	switch {
	case errors.Is(err, sys.EPERM):
		return fmt.Errorf("set policy %s: %w: is this a container whose seccomp profile forbids it? Docker's does, without CAP_SYS_NICE", p, err)
	case errors.Is(err, sys.ENOSYS):
		return fmt.Errorf("set policy %s: %w: this kernel, %s, was built without NUMA", p, err, release())
	}
	return fmt.Errorf("set policy %s: %w", p, err)
}

func release() string {
	var u sys.Utsname
	if sys.Uname(&u) != nil {
		return "of unknown version"
	}
	return sys.ByteSliceToString(u.Release[:])
}
