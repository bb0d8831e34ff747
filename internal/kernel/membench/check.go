// SPDX-License-Identifier: Apache-2.0

package membench

import (
	"fmt"

	"homenode/internal/kernel/unix"
	"homenode/internal/set"
	"homenode/internal/unit"
)

// check refuses impossible jobs before anything is done.
func (p *Prober) check(j Job) error {
	if len(j.Threads) == 0 || j.Length <= 0 || j.Warm < 0 || j.Laps < 0 {
		return fmt.Errorf("run job: %d threads for %v after %v and %d laps: it needs threads and a length (%w)", len(j.Threads), j.Length, j.Warm, j.Laps, ErrBadJob)
	}
	cpus, err := p.online()
	if err != nil {
		return err
	}
	nodes, err := p.nodes()
	if err != nil {
		return err
	}
	for i, b := range j.Buffers {
		if err := checkBuffer(b, cpus, nodes); err != nil {
			return fmt.Errorf("buffer %d: %w", i, err)
		}
	}
	for i, t := range j.Threads {
		if err := checkThread(t, j.Buffers, cpus); err != nil {
			return fmt.Errorf("thread %d: %w", i, err)
		}
	}
	return checkParts(j)
}

// checkParts requires a line for each thread that shares a buffer: a part without lines
// would never end. Chases have the whole buffer.
func checkParts(j Job) error {
	parts := j.parts()
	for i, t := range j.Threads {
		if t.Work == Chase || t.Work == Transfer {
			continue
		}
		if lines := linesFor(t, int(j.Buffers[t.Buffer].Bytes)/line); lines < parts[t.Buffer] {
			return fmt.Errorf("thread %d: %s: buffer %d of %v has %d lines for it and the %d threads that share it: each needs one (%w)",
				i, t.Work, t.Buffer, j.Buffers[t.Buffer].Bytes, lines, parts[t.Buffer], ErrBadJob)
		}
	}
	return nil
}

func checkBuffer(b Buffer, cpus set.CPUSet, nodes set.NodeSet) error {
	if b.Bytes < line {
		return fmt.Errorf("map %v: the least is a line of %d bytes (%w)", b.Bytes, line, ErrBadJob)
	}
	p := b.policy()
	if !p.Known() {
		return fmt.Errorf("policy %q: want %s (%w)", p, unix.MemPolicyNames(), ErrBadJob)
	}
	if p.TakesNodes() && b.Nodes.IsEmpty() {
		return fmt.Errorf("policy %s: it needs nodes, none are named (%w)", p, ErrBadJob)
	}
	if !p.TakesNodes() && !b.Nodes.IsEmpty() {
		return fmt.Errorf("policy %s: it takes no nodes, %s are named (%w)", p, b.Nodes, ErrBadJob)
	}
	if err := checkNodes(b.Nodes, nodes); err != nil {
		return err
	}
	if p == Local {
		return checkCPU(b.TouchCPU, cpus)
	}
	return nil
}

func checkNodes(want, have set.NodeSet) error {
	if missing := want.Minus(have); !missing.IsEmpty() {
		return fmt.Errorf("place memory on node %s: %w with memory: this machine has %s", missing, ErrNoNode, have)
	}
	return nil
}

func checkCPU(cpu int, online set.CPUSet) error {
	if cpu < 0 || !online.Has(cpu) {
		return fmt.Errorf("run on CPU %d: %w online: %s are", cpu, ErrNoCPU, online)
	}
	return nil
}

func checkThread(t Thread, buffers []Buffer, cpus set.CPUSet) error {
	if err := checkCPU(t.CPU, cpus); err != nil {
		return err
	}
	bad := func(format string, args ...any) error {
		return fmt.Errorf("%s: %s (%w)", t.Work, fmt.Sprintf(format, args...), ErrBadJob)
	}
	if t.Buffer < 0 || t.Buffer >= len(buffers) {
		return bad("buffer %d of %d", t.Buffer, len(buffers))
	}
	if t.AddEvery < 0 || t.Pause < 0 {
		return bad("an add every %d ops, a pause of %d: less than none", t.AddEvery, t.Pause)
	}
	if t.AddEvery > 0 && (t.Shared < 0 || t.Shared >= len(buffers)) {
		return bad("shared buffer %d of %d", t.Shared, len(buffers))
	}
	switch t.Work {
	case Chase, Read, Write, Copy:
	case Mixed:
		if t.Reads < 0 || t.Writes < 0 || t.Reads+t.Writes == 0 {
			return bad("%d lines read, %d written: nothing to mix", t.Reads, t.Writes)
		}
	case Transfer:
		if t.Owner == t.CPU || t.AddEvery > 0 {
			return bad("from CPU %d to CPU %d, an add every %d: a transfer is between two CPUs, without adds", t.Owner, t.CPU, t.AddEvery)
		}
		return checkCPU(t.Owner, cpus)
	default:
		return bad("unknown work")
	}
	return nil
}

func (p *Prober) online() (set.CPUSet, error) {
	return readSet(p, "/sys/devices/system/cpu/online", set.ParseCPUs)
}

// nodes are the nodes with memory.
func (p *Prober) nodes() (set.NodeSet, error) {
	return readSet(p, "/sys/devices/system/node/has_memory", set.ParseNodes)
}

func readSet[K set.Kind](p *Prober, path string, parse func(string) (set.Set[K], error)) (set.Set[K], error) {
	data, err := p.buf.ReadFile(p.root.Path(path))
	if err != nil {
		return set.Set[K]{}, unix.Explain("read", path, "", err)
	}
	s, err := parse(string(data))
	if err != nil {
		return set.Set[K]{}, fmt.Errorf("read %s: %w (%w)", path, err, unix.ErrMalformed)
	}
	return s, nil
}

func (b Buffer) policy() Policy {
	if b.Policy == "" {
		return Bind
	}
	return b.Policy
}

// size is what is mapped: whole pages.
func (b Buffer) size() unit.Bytes {
	page := unit.Bytes(unix.PageSize())
	return (b.Bytes + page - 1) / page * page
}
