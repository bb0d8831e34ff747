// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"fmt"
	"os"
	"path"
	"slices"

	"homenode/internal/agent/decisions"
	"homenode/internal/agent/outbox"
	"homenode/internal/render/words"
	"homenode/internal/schema"
	"homenode/internal/store"
	"homenode/internal/unit"
	"homenode/internal/window"
	"homenode/internal/wire"
)

// openOutbox begins to send, if the configuration names a hub.
func (a *Agent) openOutbox() error {
	if !a.o.Config.Hub.On() {
		return nil
	}
	o, err := outbox.New(a.o.Config.Hub, a.o.Log, a.o.HubClock)
	if err != nil {
		return fmt.Errorf("hub: %w", err)
	}
	a.outbox = o
	return nil
}

// sends says that its windows reach a hub, or will when the hub is there again.
func (s Status) sends() bool {
	return s.Hub != nil && (s.Hub.Error == "" || !s.Hub.LastSent.IsZero())
}

func (a *Agent) closeOutbox() {
	a.outbox.Close()
	a.outbox = nil
}

func (a *Agent) hubStatus() *outbox.Status {
	if a.outbox == nil {
		return nil
	}
	s := a.outbox.Status()
	s.Rests = a.rests
	return &s
}

// askAfter is how many windows a dry run offers, or not, before it looks at the agent beside it again.
const askAfter = 6

// rest is why a dry run offers nothing: an agent of the same host sends what it sees, and the host
// would be counted twice. "": it offers.
func (a *Agent) rest() string {
	if !a.o.DryRun || a.beside == nil {
		return ""
	}
	if a.offers++; a.offers%askAfter == 1 {
		a.rests = ""
		if s, err := readStatusFile(a.beside.Dir); err == nil && s.sends() && s.PID != os.Getpid() && alive(s.PID) {
			a.rests = fmt.Sprintf("the agent of this host (process %d) sends", s.PID)
		}
	}
	return a.rests
}

// ordered is the approval and target of a workload after the hub's orders and this host's
// exclusions. Its own exclusions come last: local safety beats an order.
func (a *Agent) ordered(id, service string, approved bool, target unit.Opt[unit.Ratio]) (bool, unit.Opt[unit.Ratio]) {
	orders, _ := a.outbox.Orders()
	return a.o.Config.ordered(orders, id, service, approved, target)
}

// ordered: orders is nil where there are none.
func (c Config) ordered(orders *outbox.Orders, id, service string, approved bool, target unit.Opt[unit.Ratio]) (bool, unit.Opt[unit.Ratio]) {
	if orders != nil {
		if s, ok := orders.Services[service]; ok && service != "" {
			approved = s.Approved
			if s.Target.Known() {
				target = s.Target
			}
		}
		approved = approved && !orders.Excludes(id)
	}
	for _, p := range c.Excluded {
		if ok, _ := path.Match(p, id); ok {
			approved = false
		}
	}
	return approved, target
}

// noteForHub keeps a decision until the round's window is sent.
func (a *Agent) noteForHub(e decisions.Entry) {
	if a.outbox == nil {
		return
	}
	a.decided = append(a.decided, store.Decision{At: e.At, Kind: string(e.Kind), Workload: schema.Path(e.Workload), Service: outbox.Clip(e.Service, wire.MostLabel),
		Nodes: e.Nodes.IDs(), DryRun: e.DryRun, Rule: e.Reason.Rule, Sentence: outbox.Clip(words.Full(e.Reason), wire.MostText)})
}

// offer gives the hub what this round saw, decided and did.
func (a *Agent) offer(w window.Window) {
	if a.outbox == nil || w.Length <= 0 { // the first window is of no time: it has no figures of a period
		return
	}
	if a.rest() != "" {
		a.decided = a.decided[:0]
		return
	}
	b := &a.offered // used again: the outbox keeps nothing of it
	b.Decisions, a.decided = a.decided, b.Decisions[:0]
	b.Nodes, b.Windows, b.Outcomes = b.Nodes[:0], b.Windows[:0], b.Outcomes[:0]
	for i := range w.Nodes {
		b.Nodes = append(b.Nodes, outbox.Node(&w, &w.Nodes[i]))
	}
	b.Windows = slices.Grow(b.Windows, len(w.Workloads))
	for i := range w.Workloads {
		st := &a.status.Workloads[i]
		b.Windows = append(b.Windows, outbox.Workload(&w, &w.Workloads[i], st.Features, st.Labels.String(), st.Nodes.IDs()))
	}
	for _, o := range w.Outcomes {
		wl, _ := w.Workload(o.Step.Workload)
		b.Outcomes = append(b.Outcomes, outbox.Outcome(&w, o, wl.Service))
	}
	if a.o.PlayToHub { // as fast as possible, and all of it
		a.outbox.Put(*b)
		return
	}
	a.outbox.Offer(*b)
}
