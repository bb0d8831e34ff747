// SPDX-License-Identifier: Apache-2.0

package launch

import (
	"errors"
	"fmt"

	"homenode/internal/kernel/unix"
	"homenode/internal/set"
)

// thread is the calling thread, for which the kernel keeps CPUs and policy. The
// caller holds it with runtime.LockOSThread. Tests have a fake one.
type thread interface {
	affinity() (set.CPUSet, error)
	setAffinity(set.CPUSet) error
	policy() (mode int, nodes set.NodeSet, err error)
	setPolicy(mode int, nodes set.NodeSet) error
}

// liveThread is the thread of the running kernel.
type liveThread struct{}

func (liveThread) affinity() (set.CPUSet, error) {
	var mask unix.CPUWords
	n, err := unix.LiveAffinity{}.Affinity(0, &mask)
	if err != nil {
		return set.CPUSet{}, err
	}
	return set.FromCPUs(set.IDsOf(mask[:n])...), nil
}

func (liveThread) setAffinity(cpus set.CPUSet) error {
	return unix.LiveAffinity{}.SetAffinity(0, cpus.Words())
}

func (liveThread) policy() (int, set.NodeSet, error) { return unix.GetMemPolicy() }

func (liveThread) setPolicy(mode int, nodes set.NodeSet) error { return unix.SetMemPolicy(mode, nodes) }

// apply places the thread and returns a function that restores what was replaced. On
// error nothing stays changed.
func apply(t thread, p Placement) (restore func() error, err error) {
	var undo []func() error
	restore = func() error {
		var errs []error
		for _, u := range undo {
			errs = append(errs, u())
		}
		return errors.Join(errs...)
	}
	if !p.CPUs.IsEmpty() {
		before, err := t.affinity()
		if err == nil {
			err = t.setAffinity(p.CPUs)
		}
		if err != nil {
			return nil, fmt.Errorf("run on CPUs %s: %w", p.CPUs, err)
		}
		undo = append(undo, func() error { return t.setAffinity(before) })
	}
	if p.Policy != "" {
		mode, nodes, err := t.policy()
		if err == nil {
			err = t.setPolicy(p.Policy.Number(), p.Nodes)
		}
		if err != nil {
			return nil, errors.Join(refused(p.Policy, err), restore())
		}
		undo = append(undo, func() error { return t.setPolicy(mode, nodes) })
	}
	return restore, nil
}
