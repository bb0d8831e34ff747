// SPDX-License-Identifier: Apache-2.0

package bpfcount

import (
	"errors"
	"fmt"
	"slices"

	"github.com/cilium/ebpf/btf"

	"homenode/internal/kernel/unix"
)

// find looks up the offsets of the fields in the kernel's own BTF. subsystem is the
// cgroup v1 controller whose hierarchy is meant; "" = cgroup v2.
func find(spec *btf.Spec, subsystem string) (layout, error) {
	var l layout
	var errs []error
	at := func(typ string, member string) int16 {
		o, err := offsetOf(spec, typ, member)
		errs = append(errs, err)
		return o
	}
	l.taskCgroups, l.cgroupNode = at("task_struct", "cgroups"), at("cgroup", "kn")
	l.nodeID, l.cssCgroup = at("kernfs_node", "id"), -1
	if subsystem == "" {
		l.setCgroup = at("css_set", "dfl_cgrp")
	} else {
		n, err := subsystemNumber(spec, subsystem)
		errs = append(errs, err)
		l.setCgroup = at("css_set", "subsys") + word*n
		l.cssCgroup = at("cgroup_subsys_state", "cgroup")
	}
	if err := errors.Join(errs...); err != nil {
		return layout{}, fmt.Errorf("read the kernel's types: %w (%w)", err, unix.ErrNotSupported)
	}
	return l, nil
}

func offsetOf(spec *btf.Spec, name, member string) (int16, error) {
	var s *btf.Struct
	if err := spec.TypeByName(name, &s); err != nil {
		return 0, fmt.Errorf("struct %s: %w", name, err)
	}
	if bits, ok := offsetIn(s.Members, member, 0); ok && bits/8 < 1<<15 {
		return int16(bits / 8), nil
	}
	return 0, fmt.Errorf("struct %s has no %s", name, member)
}

// offsetIn looks into members without a name, too.
func offsetIn(members []btf.Member, name string, base btf.Bits) (btf.Bits, bool) {
	for _, m := range members {
		if m.Name == name {
			return base + m.Offset, true
		}
		var inner []btf.Member
		switch t := m.Type.(type) {
		case *btf.Struct:
			inner = t.Members
		case *btf.Union:
			inner = t.Members
		}
		if m.Name != "" {
			continue
		}
		if at, ok := offsetIn(inner, name, base+m.Offset); ok {
			return at, true
		}
	}
	return 0, false
}

// subsystemNumber is NAME_cgrp_id of enum cgroup_subsys_id.
func subsystemNumber(spec *btf.Spec, name string) (int16, error) {
	var e *btf.Enum
	if err := spec.TypeByName("cgroup_subsys_id", &e); err != nil {
		return 0, fmt.Errorf("enum cgroup_subsys_id: %w", err)
	}
	i := slices.IndexFunc(e.Values, func(v btf.EnumValue) bool { return v.Name == name+"_cgrp_id" })
	if i < 0 {
		return 0, fmt.Errorf("enum cgroup_subsys_id has no %s_cgrp_id", name)
	}
	return int16(e.Values[i].Value), nil
}
