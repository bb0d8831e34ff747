// SPDX-License-Identifier: Apache-2.0

// Package windowtest makes windows for decision tests from a few lines of text,
// runs scenario scripts, and plays a toy world that applies steps.
//
//	machine nodes=4 cpus=2 mem=512MiB                  shape (config KEY=VALUE: see Script)
//	workload /a approved cpu=1.6 anon=64MiB,0,0,0 …    what it does, until said otherwise
//	tick                                               one window; its output follows "----"
//
// It is for tests only, and deliberately naive: figures are those of the script. It is
// NOT a simulator (internal/sim) and knows nothing of Linux.
package windowtest

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"homenode/internal/action"
	"homenode/internal/machine"
	"homenode/internal/set"
	"homenode/internal/unit"
	"homenode/internal/window"
)

// Host is a machine and what its workloads do from window to window.
type Host struct {
	Machine machine.Machine
	Length  time.Duration
	Seq     uint64
	Mover   unit.Bytes // limit of a move in a window; 0: its budget
	nodes   []node
	loads   []*Load
	pending []action.Outcome
	faults  map[string]action.Outcome // "workload kind" → outcome of its next such step
}

type node struct {
	id   int
	cpus set.CPUSet
	mem  unit.Bytes
	busy unit.Opt[float64] // None: the sum of what the workloads use there
	off  bool
}

// Load is a workload of the script.
type Load struct {
	window.Workload
	before window.Binding // before the first step
}

// Shape replaces the machine: n nodes with so many CPUs and so much memory each,
// at distance 20 from each other.
func (h *Host) Shape(ids []int, cpus int, mem unit.Bytes) {
	h.Machine = machine.Machine{Origin: "fake:windowtest"}
	h.nodes, h.loads = nil, nil
	if h.Length == 0 {
		h.Length = time.Second
	}
	for i, id := range ids {
		var mine []int
		for c := range cpus {
			mine = append(mine, i*cpus+c)
			h.Machine.CPUs = append(h.Machine.CPUs, machine.CPU{ID: i*cpus + c, Node: unit.Some(id), Online: true})
		}
		h.nodes = append(h.nodes, node{id: id, cpus: set.FromCPUs(mine...), mem: mem})
		row := make([]unit.Opt[int], len(ids))
		for j := range row {
			row[j] = unit.Some(20)
		}
		row[i] = unit.Some(machine.LocalDistance)
		h.Machine.Distances = append(h.Machine.Distances, row)
	}
	h.syncMachine()
}

func (h *Host) syncMachine() {
	h.Machine.Nodes = nil
	for _, n := range h.nodes {
		if n.off {
			n.cpus = set.CPUSet{}
		}
		h.Machine.Nodes = append(h.Machine.Nodes, machine.Node{ID: n.id, CPUs: n.cpus, Memory: unit.Some(n.mem)})
	}
}

// Load returns a workload, made when it is new.
func (h *Host) Load(id string) *Load {
	for _, l := range h.loads {
		if l.ID == id {
			return l
		}
	}
	l := &Load{}
	l.ID, l.Owner = id, "none"
	l.AnonByNode = make([]unit.Value[unit.Bytes], len(h.nodes))
	l.FileByNode = make([]unit.Value[unit.Bytes], len(h.nodes))
	l.CPUByNode = make([]unit.Value[float64], len(h.nodes))
	for i := range h.nodes {
		l.AnonByNode[i] = unit.Measured(unit.Bytes(0), "script")
		l.FileByNode[i] = unit.Measured(unit.Bytes(0), "script")
	}
	l.CPU = unit.UnknownValue[float64]("not in the script")
	l.Quota = unit.UnknownValue[float64]("no limit is set")
	h.loads = append(h.loads, l)
	slices.SortFunc(h.loads, func(a, b *Load) int { return cmp.Compare(a.ID, b.ID) })
	return l
}

// Remove makes a workload vanish.
func (h *Host) Remove(id string) {
	h.loads = slices.DeleteFunc(h.loads, func(l *Load) bool { return l.ID == id })
}

// Window ends the period: the next window.
func (h *Host) Window() window.Window {
	h.Seq++
	w := window.Window{
		Schema: window.Schema, Seq: h.Seq, Length: h.Length,
		At: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(h.Seq) * h.Length),
	}
	for i, n := range h.nodes {
		w.Nodes = append(w.Nodes, h.window(i, n))
	}
	for _, l := range h.loads {
		w.Workloads = append(w.Workloads, l.Workload)
	}
	w.Outcomes, h.pending = h.pending, nil
	return w
}

func (h *Host) window(i int, n node) window.Node {
	busy, anon, file := 0.0, unit.Bytes(0), unit.Bytes(0)
	for _, l := range h.loads {
		busy += at(l.CPUByNode, i)
		anon += at(l.AnonByNode, i)
		file += at(l.FileByNode, i)
	}
	if n.off {
		n.cpus, busy = set.CPUSet{}, 0
	}
	return window.Node{
		ID: n.id, CPUs: n.cpus, CPUBusy: unit.Measured(n.busy.Or(busy), "script"), Memory: unit.Measured(n.mem, "script"),
		Free: unit.Measured(max(0, n.mem-anon-file), "script"), File: unit.Measured(file, "script"), Anon: unit.Measured(anon, "script"),
	}
}

func at[T any](by []unit.Value[T], i int) (v T) {
	if i < len(by) {
		return by[i].Or(v)
	}
	return v
}

// Line reads one line of a script; false when it does not belong to this package.
func (h *Host) Line(line string) (bool, error) {
	words := Words(line)
	switch words[0] {
	case "machine":
		return true, h.machineLine(words[1:])
	case "distances":
		return true, h.distancesLine(words[1:])
	case "node":
		return true, h.nodeLine(words[1:])
	case "offline", "online":
		return true, h.power(words[1:], words[0] == "offline")
	case "workload":
		return true, h.workloadLine(words[1:])
	case "gone":
		h.Remove(words[1])
		return true, nil
	case "mover":
		var err error
		h.Mover, err = unit.ParseBytes(words[1])
		return true, err
	case "outcome", "fault":
		return true, h.outcomeLine(words)
	}
	return false, nil
}

// Words splits at blanks, but not inside "…". Quotes around a whole word or a whole value
// (KEY="…") are dropped; those of JSON stay.
func Words(line string) []string {
	quoted := false
	fields := strings.FieldsFunc(line, func(r rune) bool {
		if r == '"' {
			quoted = !quoted
		}
		return r == ' ' && !quoted
	})
	for i := range fields {
		if strings.HasPrefix(fields[i], `"`) || strings.Contains(fields[i], `="`) {
			fields[i] = strings.ReplaceAll(fields[i], `"`, "")
		}
	}
	return fields
}

func (h *Host) machineLine(words []string) error {
	ids, cpus, mem := []int{0, 1}, 2, 512*unit.MiB
	for _, word := range words {
		key, value, _ := strings.Cut(word, "=")
		var err error
		switch key {
		case "nodes": // a count, or a list in brackets-free kernel form, e.g. 0,2-3
			if n, bad := strconv.Atoi(value); bad == nil {
				value = fmt.Sprintf("0-%d", n-1)
			}
			var s set.NodeSet
			s, err = set.ParseNodes(value)
			ids = s.IDs()
		case "cpus":
			cpus, err = strconv.Atoi(value)
		case "mem":
			mem, err = unit.ParseBytes(value)
		default:
			err = fmt.Errorf("unknown key %q", key)
		}
		if err != nil {
			return err
		}
	}
	h.Shape(ids, cpus, mem)
	return nil
}

func (h *Host) distancesLine(rows []string) error {
	for i, row := range rows {
		for j, field := range strings.Split(row, ",") {
			d, err := strconv.Atoi(field)
			if err != nil {
				return err
			}
			h.Machine.Distances[i][j] = unit.Some(d)
		}
	}
	return nil
}

func (h *Host) nodeLine(words []string) error {
	i, err := h.nodeAt(words[0])
	if err != nil {
		return err
	}
	for _, word := range words[1:] {
		key, value, _ := strings.Cut(word, "=")
		switch key {
		case "busy":
			busy, bad := strconv.ParseFloat(value, 64)
			h.nodes[i].busy, err = unit.OptOf(busy, bad == nil), nil // "auto" and the like: as used
		case "mem":
			h.nodes[i].mem, err = unit.ParseBytes(value)
		case "cpus":
			h.nodes[i].cpus, err = set.ParseCPUs(value)
		default:
			err = fmt.Errorf("unknown key %q", key)
		}
		if err != nil {
			return err
		}
	}
	h.syncMachine()
	return nil
}

func (h *Host) nodeAt(id string) (int, error) {
	for i, n := range h.nodes {
		if strconv.Itoa(n.id) == id {
			return i, nil
		}
	}
	return 0, fmt.Errorf("no node %q", id)
}

func (h *Host) power(words []string, off bool) error {
	i, err := h.nodeAt(strings.TrimPrefix(words[0], "node="))
	if err != nil {
		return err
	}
	h.nodes[i].off = off
	h.syncMachine()
	return nil
}
