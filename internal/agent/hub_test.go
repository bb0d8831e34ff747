// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"os"
	"testing"
	"time"

	"homenode/internal/agent/outbox"
	"homenode/internal/store"
	"homenode/internal/unit"
	"homenode/internal/window"
)

// This host's exclusions beat its rules, and a rule without orders holds.
func TestLocalSafetyComesLast(t *testing.T) {
	c := Config{Excluded: []string{"/db/*"}}
	orders := &outbox.Orders{Services: map[string]outbox.ServiceOrder{"shop": {Approved: true, Target: unit.Some(unit.Ratio(.9))}, "old": {}}, Excluded: []string{"/web/x"}}
	for _, x := range []struct {
		orders         *outbox.Orders
		id, service    string
		approved, want bool
	}{
		{nil, "/db/a", "shop", true, false}, {nil, "/web/a", "shop", true, true}, {nil, "/web/a", "shop", false, false}, {nil, "/db/a/b", "shop", true, true},
		{orders, "/web/a", "shop", false, true}, {orders, "/web/a", "old", true, false}, {orders, "/web/a", "other", true, true},
		{orders, "/web/x", "shop", true, false}, {orders, "/db/a", "shop", false, false}, {orders, "/web/a", "", false, false},
	} {
		got, target := c.ordered(x.orders, x.id, x.service, x.approved, unit.None[unit.Ratio]())
		if got != x.want || target.Known() != (x.orders != nil && x.service == "shop") {
			t.Errorf("%+v: %v, %v", x, got, target)
		}
	}
}

// A dry run offers nothing while an agent of the same host sends.
func TestDryRunRestsBeside(t *testing.T) {
	dir := t.TempDir()
	write := func(s Status) {
		s.Schema = statusSchema
		if err := s.write(dir, 0); err != nil {
			t.Fatal(err)
		}
	}
	a := &Agent{o: Options{DryRun: true}, beside: &Beside{Dir: dir}}
	next := func() string {
		a.offers = 0
		return a.rest()
	}
	other := os.Getppid() // a process that runs
	for _, c := range []struct {
		what  string
		s     Status
		rests bool
	}{
		{"sends", Status{PID: other, Hub: &outbox.Status{}}, true}, {"has no hub", Status{PID: other}, false},
		{"was never let in", Status{PID: other, Hub: &outbox.Status{Error: "refused"}}, false}, {"waits for its hub", Status{PID: other, Hub: &outbox.Status{Error: "away", LastSent: time.Now()}}, true},
		{"ended", Status{PID: 1 << 30, Hub: &outbox.Status{}}, false}, {"is this one", Status{PID: os.Getpid(), Hub: &outbox.Status{}}, false},
	} {
		write(c.s)
		if got := next(); (got != "") != c.rests {
			t.Errorf("the agent beside it %s: %q", c.what, got)
		}
	}
	write(Status{PID: other, Hub: &outbox.Status{}})
	if next() == "" || a.rest() == "" {
		t.Error("it forgot before it looked again")
	}
	a.outbox, a.decided = &outbox.Outbox{}, []store.Decision{{Workload: "/db/a"}}
	if a.offer(window.Window{At: time.Now(), Length: time.Second}); len(a.decided) != 0 {
		t.Error("decisions gather while nothing is offered")
	}
	if a.o.DryRun = false; a.rest() != "" {
		t.Error("an agent that acts rests")
	}
}

// The first window is of no time: it is not offered, and the decisions wait for the next one.
func TestFirstWindowIsNotOffered(t *testing.T) {
	a := &Agent{outbox: &outbox.Outbox{}, decided: []store.Decision{{Workload: "/db/a"}}}
	a.offer(window.Window{At: time.Now()})
	if len(a.decided) != 1 {
		t.Error("a window of no length took the decisions with it")
	}
}
