// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"context"
	"errors"
	"slices"
	"testing"

	"homenode/internal/action"
	"homenode/internal/kernel/migrate"
	"homenode/internal/migration"
	"homenode/internal/set"
	"homenode/internal/unit"
)

// twoPart has some hot pages and some others, and moves what it is asked to.
type twoPart struct {
	hot, rest unit.Bytes
	asked     []string
}

func (m *twoPart) Move(_ context.Context, req migrate.Request) (migration.Result, error) {
	var r migration.Result
	name, left := "all", &m.rest
	if req.Hot != nil {
		name, left = "hot", &m.hot
	}
	m.asked = append(m.asked, name)
	moved := min(req.Budget, *left)
	*left -= moved
	r.Of(migration.Anon).Moved = moved
	r.Complete = *left == 0
	return r, nil
}

type everything struct{}

func (everything) Hot(int, uint64) bool { return true }

// Accessed pages come first, within one budget. One look is enough for a migration.
func TestHotFirst(t *testing.T) {
	m := &twoPart{hot: 3 * unit.MiB, rest: 4 * unit.MiB}
	looks := 0
	a, _ := boot(t, v2(), Config{Mover: m, Hot: func(context.Context, []int) (migrate.Hot, error) { looks++; return everything{}, nil }})
	apply := open(t).Wrap(a)
	step := action.Step{Kind: action.MovePages, Workload: "/demo/a", Nodes: set.FromNodes(1), Budget: 2 * unit.MiB, HotFirst: true}
	for i, want := range []struct {
		asked  []string
		status action.Status
		home   bool
		moved  unit.Bytes
	}{
		{[]string{"hot"}, action.InProgress, false, 2 * unit.MiB},
		{[]string{"hot", "all"}, action.InProgress, true, 2 * unit.MiB},
		{[]string{"all"}, action.InProgress, true, 2 * unit.MiB},
		{[]string{"all"}, action.Done, true, unit.MiB},
	} {
		m.asked = nil
		o := apply.Apply(ctx, step)
		if !slices.Equal(m.asked, want.asked) || o.Status != want.status || o.HotHome != want.home || o.Moved != want.moved {
			t.Errorf("window %d: asked for %v: %+v, want %+v", i, m.asked, o, want)
		}
	}
	if looks != 1 {
		t.Errorf("%d looks in one journey", looks)
	}
	step.Nodes = set.FromNodes(0)
	if apply.Apply(ctx, step); looks != 2 {
		t.Errorf("%d looks in two journeys", looks)
	}
}

// Where hot pages are unknown, or not asked for, pages are moved in any order.
func TestHotFirstUnknown(t *testing.T) {
	blind := func(context.Context, []int) (migrate.Hot, error) { return nil, errors.New("no PMU") }
	for _, first := range []bool{true, false} {
		m := &twoPart{rest: unit.MiB}
		a, _ := boot(t, v2(), Config{Mover: m, Hot: blind})
		o := open(t).Wrap(a).Apply(ctx, action.Step{Kind: action.MovePages, Workload: "/demo/a", Nodes: set.FromNodes(1), Budget: unit.MiB, HotFirst: first})
		if !slices.Equal(m.asked, []string{"all"}) || o.Status != action.Done || o.HotHome != first {
			t.Errorf("hot first %v: asked for %v: %+v", first, m.asked, o)
		}
	}
}
