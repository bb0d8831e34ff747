// SPDX-License-Identifier: Apache-2.0

package launch

import (
	"errors"
	"fmt"

	sys "golang.org/x/sys/unix"

	"homenode/internal/kernel/unix"
)

// Policy is a memory policy; "" changes nothing.
type Policy = unix.MemPolicy

// The policies; see kernel/unix.
const (
	Local              = unix.PolicyLocal
	Bind               = unix.PolicyBind
	Preferred          = unix.PolicyPreferred
	PreferredMany      = unix.PolicyPreferredMany
	Interleave         = unix.PolicyInterleave
	WeightedInterleave = unix.PolicyWeightedInterleave
)

// Policies are all names, for help and messages.
func Policies() string { return unix.MemPolicyNames() }

// ParsePolicy reads a policy's name; "" is none.
func ParsePolicy(text string) (Policy, error) { return unix.ParseMemPolicy(text) }

// refused makes a sentence of the kernel's error for a policy of nodes that exist and
// that this process may use. EINVAL then means that the kernel does not know the mode
// (sanitize_mpol_flags in mm/mempolicy.c).
func refused(p Policy, err error) error {
	switch {
	case p.Since() != "" && errors.Is(err, sys.EINVAL):
		return fmt.Errorf("set policy %s: this kernel, %s, does not have it: Linux has it since %s", p, release(), p.Since())
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
