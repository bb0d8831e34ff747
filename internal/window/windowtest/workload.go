// SPDX-License-Identifier: Apache-2.0

package windowtest

import (
	"fmt"
	"strconv"
	"strings"

	"homenode/internal/action"
	"homenode/internal/set"
	"homenode/internal/unit"
)

// workloadLine reads "workload ID KEY=VALUE …". Lists by node may be one figure
// (all on the first node); "?" is unknown. Unless `on` is given, cpu is spread
// over the CPUs it may use.
func (h *Host) workloadLine(words []string) error {
	l := h.Load(words[0])
	for _, word := range words[1:] {
		key, value, _ := strings.Cut(word, "=")
		if err := h.set(l, key, value); err != nil {
			return fmt.Errorf("workload %s: %s: %w", l.ID, word, err)
		}
	}
	return nil
}

func (h *Host) set(l *Load, key, value string) (err error) {
	switch key {
	case "approved":
		l.Approved = value != "no"
	case "target":
		var f float64
		f, err = strconv.ParseFloat(value, 64)
		l.Target = unit.Some(unit.Ratio(f))
	case "cpu":
		l.CPU, err = parse(value, parseFloat)
		h.Spread(l)
	case "on":
		l.CPUByNode, err = list(h, value, parseFloat)
	case "quota":
		l.Quota, err = parse(value, parseFloat)
	case "anon":
		l.AnonByNode, err = list(h, value, unit.ParseBytes)
	case "file":
		l.FileByNode, err = list(h, value, unit.ParseBytes)
	case "local":
		l.LocalLoads, err = parse(value, parseUint)
	case "remote":
		l.RemoteLoads, err = parse(value, parseUint)
	case "cycles":
		l.Cycles, err = parse(value, parseUint)
	case "tasks":
		l.Tasks, err = parse(value, strconv.Atoi)
	case "service":
		l.Service = value
	case "instructions":
		l.Instructions, err = parse(value, parseUint)
	case "requests":
		l.UncoreRequests, err = parse(value, parseUint)
	case "waits":
		l.UncoreWaits, err = parse(value, parseUint)
	case "llc":
		l.LLC, err = parse(value, unit.ParseBytes)
	case "stalls":
		l.StallCycles, err = parse(value, parseUint)
	default:
		return h.setBinding(l, key, value)
	}
	return err
}

func (h *Host) setBinding(l *Load, key, value string) (err error) {
	switch key {
	case "cpus":
		l.Binding.CPUs, err = set.ParseCPUs(value)
		h.Spread(l)
	case "mems":
		l.Binding.Mems, err = set.ParseNodes(value)
	case "ours":
		l.Binding.OursCPUs = strings.Contains(value, "cpus")
		l.Binding.OursMems = strings.Contains(value, "mems")
	case "pinned-cpus":
		l.Binding.PinnedCPUs, l.Binding.PinnedWhy = true, value
	case "pinned-mems":
		l.Binding.PinnedMems, l.Binding.PinnedWhy = true, value
	default:
		err = fmt.Errorf("unknown key %q", key)
	}
	return err
}

func parseFloat(s string) (float64, error) { return strconv.ParseFloat(s, 64) }
func parseUint(s string) (uint64, error)   { return strconv.ParseUint(s, 10, 64) }

func parse[T any](text string, one func(string) (T, error)) (unit.Value[T], error) {
	if text == "?" {
		return unit.UnknownValue[T]("the script says so"), nil
	}
	v, err := one(text)
	if err != nil {
		return unit.Value[T]{}, err
	}
	return unit.Measured(v, "script"), nil
}

func list[T any](h *Host, text string, one func(string) (T, error)) ([]unit.Value[T], error) {
	if text == "?" {
		return nil, nil
	}
	var zero T
	by := make([]unit.Value[T], len(h.nodes))
	for i := range by {
		by[i] = unit.Measured(zero, "script")
	}
	for i, field := range strings.Split(text, ",") {
		v, err := parse(field, one)
		if err != nil || i >= len(by) {
			return nil, fmt.Errorf("field %d %q: %w", i+1, field, err)
		}
		by[i] = v
	}
	return by, nil
}

// Spread puts a workload's CPU time evenly on the CPUs it may use.
func (h *Host) Spread(l *Load) {
	cpu, ok := l.CPU.Get()
	if !ok {
		l.CPUByNode = nil
		return
	}
	var all set.CPUSet
	for _, n := range h.nodes {
		if !n.off {
			all = all.Union(n.cpus)
		}
	}
	if may := l.Binding.CPUs.Intersect(all); !may.IsEmpty() {
		all = may
	}
	l.CPUByNode = make([]unit.Value[float64], len(h.nodes))
	for i, n := range h.nodes {
		share := float64(n.cpus.Intersect(all).Len()) / float64(max(1, all.Len()))
		l.CPUByNode[i] = unit.Measured(cpu*share, "script")
	}
}

// outcomeLine reads "outcome ID KIND STATUS [DETAIL]" (comes with the next window) or
// "fault ID KIND STATUS [DETAIL]" (the outcome of the next such step). "undone" is a
// refusal of what had begun.
func (h *Host) outcomeLine(words []string) error {
	if len(words) < 4 {
		return fmt.Errorf("want: %s ID KIND STATUS [DETAIL]", words[0])
	}
	o := action.Outcome{
		Step:   action.Step{Workload: words[1], Kind: action.StepKind(words[2])},
		Status: action.Status(words[3]), Detail: strings.Join(words[4:], " "),
	}
	if words[3] == "undone" {
		o.Status, o.Undone = action.Refused, true
	}
	if words[0] == "outcome" {
		h.Report(o)
		return nil
	}
	h.Fault(o)
	return nil
}

// Report puts an outcome into the next window.
func (h *Host) Report(o ...action.Outcome) { h.pending = append(h.pending, o...) }

// Fault makes the next such step of that workload end this way.
func (h *Host) Fault(o action.Outcome) {
	if h.faults == nil {
		h.faults = map[string]action.Outcome{}
	}
	h.faults[o.Step.Workload+" "+string(o.Step.Kind)] = o
}
