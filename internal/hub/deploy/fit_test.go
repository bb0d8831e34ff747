// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"homenode/internal/store"
)

func table(names []string, rows [][]any) (t store.Table) {
	for _, name := range names {
		t.Columns = append(t.Columns, store.Column{Name: name})
	}
	t.Rows = rows
	return t
}

func nodesTable(rows ...[]any) store.Table {
	return table([]string{"node", "cpus", "memory_bytes"}, rows)
}

func loadsTable(rows ...[]any) store.Table {
	return table([]string{"service", "cpus", "anon_by_node", "file_by_node", "bound"}, rows)
}

// What fits is what single nodes have room for, all at once, beside what is bound. What has no
// known size does not fit.
func TestFit(t *testing.T) {
	two := nodesTable([]any{int64(0), 8.0, 10e9}, []any{int64(1), 8.0, 10e9})
	shop := func(cpus any, anon, bound string) []any { return []any{"shop", cpus, anon, "0 0", bound} }
	for name, c := range map[string]struct {
		nodes, loads store.Table
		want         Fit
	}{
		"one on each":                {two, loadsTable(shop(7.0, "1e9 1e9", ""), shop(6.0, "1e9 1e9", "")), Fit{Replicas: 2, Fitting: 2}},
		"the third finds no CPUs":    {two, loadsTable(shop(7.0, "1 1", ""), shop(6.0, "1 1", ""), shop(5.0, "1 1", "")), Fit{Replicas: 3, Fitting: 2}},
		"the larger first":           {two, loadsTable(shop(1.0, "1 1", ""), shop(8.0, "1 1", ""), shop(7.0, "1 1", "")), Fit{Replicas: 3, Fitting: 3}},
		"no memory":                  {two, loadsTable(shop(1.0, "6e9 5e9", "")), Fit{Replicas: 1}},
		"file memory counts":         {two, loadsTable([]any{"shop", 1.0, "6e9", "5e9", ""}), Fit{Replicas: 1}},
		"wider than a node":          {two, loadsTable(shop(9.0, "1 1", "")), Fit{Replicas: 1}},
		"bound ones keep their node": {two, loadsTable(shop(6.0, "1 1", ""), []any{"other", 6.0, "1 1", "", "0"}, []any{"other", 6.0, "1 1", "", "1"}), Fit{Replicas: 1}},
		"bound to two nodes":         {two, loadsTable(shop(6.0, "1 1", ""), []any{"other", 6.0, "1 1", "", "0-1"}), Fit{Replicas: 1}},
		"others may leave":           {two, loadsTable(shop(6.0, "1 1", ""), []any{"other", 16.0, "1 1", "", ""}), Fit{Replicas: 1, Fitting: 1}},
		"bound already":              {two, loadsTable(shop(6.0, "1 1", "1")), Fit{}},
		"unknown size":               {two, loadsTable(shop(nil, "1 1", ""), shop(1.0, "", ""), shop(1.0, "x 1", "")), Fit{Replicas: 3, Unknown: 3}},
		"unknown nodes":              {nodesTable([]any{int64(0), nil, 1e9}), loadsTable(shop(1.0, "1 1", "")), Fit{Replicas: 1, Unknown: 1}},
		"a bound set of nonsense":    {two, loadsTable(shop(1.0, "1 1", ""), []any{"other", 6.0, "1 1", "", "99-1,\xff"}), Fit{Replicas: 1, Fitting: 1}},
	} {
		var f Fit
		f.addHost(c.nodes, c.loads, "shop")
		if f != c.want {
			t.Errorf("%s: %+v, want %+v", name, f, c.want)
		}
	}
}

// asking answers as its function does.
type asking func(q store.Question) (store.Table, error)

func (a asking) Ask(_ context.Context, q store.Question) (store.Table, error) { return a(q) }

// Of many hosts some are looked at, from all over the fleet; each once.
func TestFitOfManyHosts(t *testing.T) {
	var hosts []string
	for i := range 1000 {
		hosts = append(hosts, fmt.Sprintf("host-%03d", i), fmt.Sprintf("host-%03d", i))
	}
	looked := map[string]int{}
	f, err := fitOf(t.Context(), asking(func(q store.Question) (store.Table, error) {
		looked[q.Host]++
		return roomy(q.Topic), nil
	}), "shop", hosts, noon)
	if err != nil || f.Hosts != mostFitHosts || f.AllHosts != 1000 || f.Replicas != mostFitHosts || f.Fitting != mostFitHosts || !f.Enough() {
		t.Errorf("%+v, %v", f, err)
	}
	if len(looked) != mostFitHosts || looked["host-000"] != 2 || looked["host-975"] != 2 {
		t.Errorf("looked at %v", looked)
	}
	if got := f.Words(); got != "40 of 40 replicas would fit on a node of their hosts (looked at on 40 of 1000 hosts)" {
		t.Error(got)
	}
	broken := errors.New("the store is away")
	if _, err := fitOf(t.Context(), asking(func(store.Question) (store.Table, error) { return store.Table{}, broken }), "shop", hosts, noon); !errors.Is(err, broken) {
		t.Error(err)
	}
	if (Fit{}).Enough() || (Fit{Replicas: 3, Unknown: 3}).Enough() || !(Fit{Replicas: 10, Fitting: 9}).Enough() || (Fit{Replicas: 10, Fitting: 8}).Enough() {
		t.Error("what is enough")
	}
}
