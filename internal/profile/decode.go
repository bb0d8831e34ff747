// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"homenode/internal/schema"
	"homenode/internal/set"
	"homenode/internal/unit"
)

// Decode reads one profile in its wire form (JSON). It is strict: it refuses a newer
// schema, an unknown field, trailing text, and impossible values (Validate). On error
// the profile is the zero Profile.
func Decode(data []byte) (Profile, error) { return schema.Decode[Profile](data, "profile", Schema) }

// Encode writes the wire form, one line without a newline. It refuses what Decode would
// refuse.
func Encode(p Profile) ([]byte, error) { return schema.Encode(p, "profile") }

// Validate refuses what is impossible in a profile: the invariants that its readers
// rely on.
//
//  1. the schema is known, and the time it took is a number,
//  2. the fingerprint has nodes, ascending, and all of its lists are about the same
//     ones,
//  3. parts are known, and done once,
//  4. nodes are in the fingerprint, and CPUs are possible,
//  5. every figure is unknown, or min <= median <= max of possible values: finite, not
//     negative, times and rates above 0, none beyond any machine,
//  6. sizes and counts are not negative, and a key is there once.
func (p Profile) Validate() error {
	if p.Schema != Schema { // 1
		return fmt.Errorf("schema %d: this program reads %d: measure again with 'homenode bench'", p.Schema, Schema)
	}
	if !(p.Seconds >= 0) || math.IsInf(p.Seconds, 0) {
		return fmt.Errorf("seconds %g: want a time", p.Seconds)
	}
	if err := p.Machine.check(); err != nil { // 2
		return fmt.Errorf("machine: %w", err)
	}
	c := checker{nodes: p.Machine.Nodes}
	c.node("used_nodes", p.UsedNodes.IDs()...)
	c.parts(p)
	c.memory(p)
	c.caches(p)
	c.pages(p)
	c.rao(p.Rao)
	return c.err
}

func (f Fingerprint) check() error {
	n := len(f.Nodes)
	if n == 0 || f.CPUs < 1 {
		return fmt.Errorf("%d nodes and %d CPUs: want some", n, f.CPUs)
	}
	if len(f.NodeCPUs) != n || len(f.Memory) != n || len(f.Distances) != n {
		return fmt.Errorf("%d nodes, CPUs of %d, memory of %d, distances of %d: want as many", n, len(f.NodeCPUs), len(f.Memory), len(f.Distances))
	}
	for i, id := range f.Nodes {
		switch {
		case id < 0 || id > set.MaxNode || i > 0 && id <= f.Nodes[i-1]:
			return fmt.Errorf("node %d at position %d: want ascending ids", id, i)
		case len(f.Distances[i]) != n:
			return fmt.Errorf("node %d: %d distances, want %d", id, len(f.Distances[i]), n)
		case f.Memory[i] < 0:
			return fmt.Errorf("node %d: its memory is negative", id)
		}
	}
	return nil
}

// checker keeps the first thing that is wrong.
type checker struct {
	nodes []int
	err   error
}

func (c *checker) fail(format string, args ...any) {
	if c.err == nil {
		c.err = fmt.Errorf(format, args...)
	}
}

func (c *checker) node(what string, ids ...int) {
	for _, id := range ids {
		if _, ok := slices.BinarySearch(c.nodes, id); !ok {
			c.fail("%s: the machine has no node %d", what, id)
		}
	}
}

func (c *checker) cpus(what string, ids [2]int) {
	for _, id := range ids {
		if id < 0 || id > set.MaxCPU {
			c.fail("%s: no CPU %d can be", what, id)
		}
	}
}

func (c *checker) figures(what string, q quantity, all ...Figure) {
	for _, f := range all {
		err := f.check()
		if err == nil {
			err = q.can(f)
		}
		if err != nil {
			c.fail("%s: %w", what, err)
		}
	}
}

func (c *checker) positive(what string, sizes ...unit.Bytes) {
	for _, s := range sizes {
		if s <= 0 {
			c.fail("%s: size %d", what, int64(s))
		}
	}
}

// once fails when a key comes twice: a reader would never find the second.
func once[T any, K comparable](c *checker, what string, all []T, key func(T) K) {
	seen := map[K]bool{}
	for _, v := range all {
		if seen[key(v)] {
			c.fail("%s: %v is there twice", what, key(v))
		}
		seen[key(v)] = true
	}
}

func (c *checker) parts(p Profile) { // 3
	known := func(part Part) {
		if !slices.Contains(Parts(), part) {
			c.fail("unknown part %q", part)
		}
	}
	for _, part := range p.Done {
		known(part)
	}
	once(c, "done", p.Done, func(part Part) Part { return part })
	for _, s := range p.Skipped {
		known(s.Part)
	}
	for _, v := range p.Caveats {
		for _, part := range v.Parts {
			known(part)
		}
	}
}

func (c *checker) memory(p Profile) {
	c.pairs(string(Latency), aTime, p.Latency)
	c.pairs(string(Bandwidth), aRate, p.Bandwidth)
	for _, f := range p.Peak {
		c.node("peak_bandwidth", f.Node)
		c.figures("peak_bandwidth", aRate, f.Figure)
	}
	once(c, "peak_bandwidth", p.Peak, func(f NodeFigure) int { return f.Node })
	for _, m := range p.Mixes {
		if m.Reads < 0 || m.Writes < 0 || m.Reads+m.Writes < 1 {
			c.fail("mixes: %d reads for %d writes", m.Reads, m.Writes)
		}
		c.figures("mixes", aRate, m.Figure)
	}
	once(c, "mixes", p.Mixes, func(m Mix) [2]int { return [2]int{m.Reads, m.Writes} })
	for _, l := range p.Loaded {
		c.node(string(Loaded), l.From, l.To)
		for _, point := range l.Points {
			if point.Pause < 0 {
				c.fail("loaded-latency: pause %d", point.Pause)
			}
			c.figures(string(Loaded), aRate, point.Bandwidth)
			c.figures(string(Loaded), aTime, point.Latency)
		}
		once(c, string(Loaded), l.Points, func(point CurvePoint) int { return point.Pause })
	}
	once(c, string(Loaded), p.Loaded, func(l Curve) string { return l.Name })
}

func (c *checker) pairs(what string, q quantity, pairs []PairFigure) {
	for _, f := range pairs {
		c.node(what, f.From, f.To)
		c.figures(what, q, f.Figure)
	}
	once(c, what, pairs, func(f PairFigure) [2]int { return [2]int{f.From, f.To} })
}

func (c *checker) caches(p Profile) {
	for i, l := range p.Caches {
		if l.Level != i+1 {
			c.fail("caches: level %d at position %d", l.Level, i)
		}
		for _, size := range []unit.Opt[unit.Bytes]{l.Size, l.Next, l.Firmware} {
			c.positive(string(Caches), size.Or(1))
		}
		c.figures(string(Caches), aTime, l.Latency)
	}
	for i, s := range p.WorkingSets {
		c.positive("working_sets", s.Bytes)
		if i > 0 && s.Bytes <= p.WorkingSets[i-1].Bytes {
			c.fail("working_sets: %v after %v", s.Bytes, p.WorkingSets[i-1].Bytes)
		}
		c.figures("working_sets", aTime, s.Figure)
	}
	for _, t := range p.CacheSharing {
		c.cpus(string(CacheSharing), t.CPUs)
		c.level(string(CacheSharing), t.Level)
		c.figures(string(CacheSharing), aTime, t.Alone, t.Together)
	}
	once(c, string(CacheSharing), p.CacheSharing, func(t SharingTest) [2]int { return t.CPUs })
	for _, f := range p.CoreToCore {
		c.cpus(string(CoreToCore), f.CPUs)
		c.level(string(CoreToCore), f.Level)
		c.figures(string(CoreToCore), aTime, f.Figure)
	}
	once(c, string(CoreToCore), p.CoreToCore, func(f CoreFigure) [2]int { return f.CPUs })
}

func (c *checker) level(what string, l Level) {
	if !slices.Contains([]Level{SameCore, SameLLC, SameNode, Between}, l) {
		c.fail("%s: unknown level %q", what, l)
	}
}

func (c *checker) pages(p Profile) {
	for _, m := range p.Migration {
		c.node(string(Migrating), m.From, m.To)
		c.positive(string(Migrating), m.PageSize)
		c.figures(string(Migrating), aTime, m.PerPage)
		c.figures(string(Migrating), aRate, m.Rate)
	}
	type move struct {
		from, to int
		size     unit.Bytes
	}
	once(c, string(Migrating), p.Migration, func(m Migration) move { return move{m.From, m.To, m.PageSize} })
	for _, r := range p.Policies {
		if r.CPU < -1 || r.CPU > set.MaxCPU {
			c.fail("policies: no CPU %d can be", r.CPU)
		}
		if against := r.Against.Or(0); !(against >= 0) || against > aCount.most {
			c.fail("policies: %s, %s: %g of local", r.Policy, r.Work, r.Against.Or(0))
		}
		q := aRate
		if r.Unit == "ns" {
			q = aTime
		}
		c.figures(string(Policies), q, r.Figure)
	}
	once(c, string(Policies), p.Policies, func(r PolicyRow) [2]string { return [2]string{r.Policy, r.Work} })
}

var errRaoThreads = errors.New("rao: a cell has no threads")

func (c *checker) rao(cells []RaoCell) {
	for _, r := range cells {
		if r.Threads < 1 && c.err == nil {
			c.err = errRaoThreads
		}
		if r.Sharing < 0 {
			c.fail("rao: sharing size %d", int64(r.Sharing))
		}
		c.positive("rao", r.WS)
		c.figures("rao", aTime, r.PerOp)
		c.figures("rao", aCount, r.Cycles, r.LLCMiss, r.MissRate, r.Penalty, r.Requests, r.PenaltyPerOp)
	}
	once(c, "rao", cells, RaoCell.Key)
}
