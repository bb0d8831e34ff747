// SPDX-License-Identifier: Apache-2.0

package action

import (
	"fmt"
	"strings"

	"homenode/internal/set"
)

// String is "bind /demo/a to nodes 1".
func (a Action) String() string {
	text := string(a.Kind) + " " + a.Workload
	switch a.Kind {
	case Pin:
		return text + putThread(a.Thread, a.CPUs, a.Release)
	case Isolate:
		return text + " to " + a.Class.String()
	}
	if !a.Nodes.IsEmpty() {
		text += " to nodes " + a.Nodes.String()
	}
	if !a.CPUs.IsEmpty() {
		text += ", CPUs " + a.CPUs.String()
	}
	if a.CPUsOnly {
		text += ", CPUs only"
	}
	return text
}

// String is "move-pages /demo/a from 0,2 to 1, at most 64MiB".
func (s Step) String() string {
	text := string(s.Kind) + " " + s.Workload
	switch s.Kind {
	case PinThread:
		text += putThread(s.Thread, s.CPUs, s.Release)
	case SetClass:
		text += " " + s.Class.String()
	case SetCPUs:
		text += " " + s.CPUs.String()
	case SetMems:
		text += " " + s.Nodes.String()
	case MovePages:
		text += fmt.Sprintf(" from %v to %v, at most %v", s.From, s.Nodes, s.Budget)
	}
	return text
}

// String is "cache 20.0%, bandwidth 50.0%", or "all there is".
func (c *Class) String() string {
	var parts []string
	if c != nil && c.Cache != 0 {
		parts = append(parts, "cache "+c.Cache.String())
	}
	if c != nil && c.Bandwidth != 0 {
		parts = append(parts, "bandwidth "+c.Bandwidth.String())
	}
	if len(parts) == 0 {
		return "all there is"
	}
	return strings.Join(parts, ", ")
}

// putThread is " thread 12 to CPUs 0-3, then free".
func putThread(id int, cpus set.CPUSet, release bool) string {
	switch {
	case cpus.IsEmpty():
		return fmt.Sprintf(" thread %d to what it had", id)
	case release:
		return fmt.Sprintf(" thread %d to CPUs %v, then free", id, cpus)
	}
	return fmt.Sprintf(" thread %d to CPUs %v", id, cpus)
}
