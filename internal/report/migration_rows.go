// SPDX-License-Identifier: Apache-2.0

package report

import (
	"homenode/internal/migration"
	"homenode/internal/set"
	"homenode/internal/unit"
)

// kindRow is one kind, or all of them, in bytes.
type kindSum struct {
	Kind   migration.Kind
	Before map[int]unit.Bytes // by node
	Home   unit.Bytes         // before, on the target nodes
	ToMove unit.Bytes         // before, on the source nodes, without what is to be left
	Other  unit.Bytes         // before, on all other nodes, and what is to be left
	// The result; unknown for a dry run.
	Moved, Gone, Failed unit.Opt[unit.Bytes]
	After               unit.Opt[unit.Bytes] // on the source nodes
}

// kindRows are the kinds that the workload had, has, or that were tried; the last row is
// their sum.
func kindSums(r migration.Report) []kindSum {
	total := kindSum{Kind: "all", Before: map[int]unit.Bytes{}}
	if r.Result.Known() {
		total.Moved, total.Gone, total.Failed = unit.Some[unit.Bytes](0), unit.Some[unit.Bytes](0), unit.Some[unit.Bytes](0)
	}
	total.After = unit.OptOf(unit.Bytes(0), r.After.Known())
	var out []kindSum
	for _, k := range migration.Kinds() {
		if x, ok := rowOf(r, k); ok {
			out = append(out, x)
			total.addKind(x)
		}
	}
	return append(out, total)
}

func (t *kindSum) addKind(x kindSum) {
	for node, b := range x.Before {
		t.Before[node] += b
	}
	t.Home, t.ToMove, t.Other = t.Home+x.Home, t.ToMove+x.ToMove, t.Other+x.Other
	t.Moved, t.Gone, t.Failed, t.After = plus(t.Moved, x.Moved), plus(t.Gone, x.Gone), plus(t.Failed, x.Failed), plus(t.After, x.After)
}

func plus(a, b unit.Opt[unit.Bytes]) unit.Opt[unit.Bytes] {
	x, ok := a.Get()
	y, too := b.Get()
	return unit.OptOf(x+y, ok && too)
}

// rowOf is false for a kind without any memory.
func rowOf(r migration.Report, k migration.Kind) (kindSum, bool) {
	x := kindSum{Kind: k, Before: map[int]unit.Bytes{}}
	before, some := r.Before.Of(k)
	for _, n := range before.Nodes {
		x.Before[n.Node] = n.Bytes
	}
	task, _ := r.Task().Of(k)
	x.Home, x.ToMove = before.On(r.To), task.Elsewhere(r.From, r.To)
	x.Other = before.Total() - x.Home - x.ToMove
	if after, ok := r.After.Get(); ok {
		left, has := after.Of(k)
		x.After, some = unit.Some(left.Elsewhere(r.From, r.To)), some || has
	}
	if res, ok := r.Result.Get(); ok {
		done, tried := resultOf(res, k)
		var failed unit.Bytes
		for _, f := range done.Failed {
			failed += f.Bytes
		}
		x.Moved, x.Gone, x.Failed = unit.Some(done.Moved), unit.Some(done.Gone), unit.Some(failed)
		some = some || tried
	}
	return x, some
}

func resultOf(r migration.Result, k migration.Kind) (migration.KindResult, bool) {
	for _, x := range r.Kinds {
		if x.Kind == k {
			return x, true
		}
	}
	return migration.KindResult{}, false
}

// nodesOf are the nodes with some of its memory, and the target nodes.
func nodesOf(r migration.Report) set.NodeSet {
	all := r.To
	for _, x := range r.Before.Rows {
		for _, n := range x.Nodes {
			if n.Node >= 0 && n.Node <= set.MaxNode { // a file may hold any number
				all = all.With(n.Node)
			}
		}
	}
	return all
}
