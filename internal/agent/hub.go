// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"fmt"
	"os"
	"path"
	"slices"

	"homenode/internal/action"
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
	o, err := outbox.New(a.o.Config.Hub, a.o.Log)
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
	a.decided = append(a.decided, store.Decision{At: e.At, Kind: string(e.Kind), Workload: schema.Path(e.Workload), Service: clip(e.Service, wire.MostLabel),
		Nodes: e.Nodes.IDs(), DryRun: e.DryRun, Rule: e.Reason.Rule, Sentence: clip(words.Full(e.Reason), wire.MostText)})
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
		b.Nodes = append(b.Nodes, storeNode(&w, &w.Nodes[i]))
	}
	b.Windows = slices.Grow(b.Windows, len(w.Workloads))
	for i := range w.Workloads {
		b.Windows = append(b.Windows, storeWindow(&w, &w.Workloads[i], &a.status.Workloads[i]))
	}
	for _, o := range w.Outcomes {
		wl, _ := w.Workload(o.Step.Workload)
		b.Outcomes = append(b.Outcomes, storeOutcome(&w, o, wl.Service))
	}
	if a.o.PlayToHub { // as fast as possible, and all of it
		a.outbox.Put(*b)
		return
	}
	a.outbox.Offer(*b)
}

func storeNode(w *window.Window, n *window.Node) store.Node {
	return store.Node{At: w.At, Length: w.Length, Node: n.ID, CPUs: n.CPUs.Len(), Busy: figure(n.CPUBusy), Memory: n.Memory.V, Free: n.Free.V, Traffic: n.Traffic.V,
		BusyHow: of(figure(n.CPUBusy), n.CPUBusy.How), MemoryHow: unit.WeakestKnown(n.Memory.How, n.Free.How), TrafficHow: n.Traffic.How}
}

func storeOutcome(w *window.Window, o action.Outcome, service string) store.Outcome {
	return store.Outcome{At: w.At, Workload: o.Step.Workload, Service: clip(service, wire.MostLabel), Action: clip(o.Step.String(), wire.MostText),
		State: string(o.Status), Sentence: clip(words.Became(o), wire.MostText)}
}

// storeWindow: arrays by node are whole or unknown.
func storeWindow(w *window.Window, wl *window.Workload, s *WorkloadStatus) store.Window {
	f := &s.Features
	out := store.Window{
		At: w.At, Length: w.Length, Workload: wl.ID, Service: clip(wl.Service, wire.MostLabel), Owner: clip(wl.Owner, wire.MostLabel),
		Name: clip(s.Labels.String(), wire.MostLabel), Approved: wl.Approved, Bound: s.Nodes.IDs(),
		CPU: figure(wl.CPU), Waiting: ratio(wl.Waiting), CPUByNode: whole(wl.CPUByNode), AnonByNode: whole(wl.AnonByNode), FileByNode: whole(wl.FileByNode),
		Cycles: wl.Cycles.V, Instructions: wl.Instructions.V, Stalls: wl.StallCycles.V, LocalReads: wl.LocalLoads.V, RemoteReads: wl.RemoteLoads.V,
		Traffic: wl.Traffic.V, Latency: figure(wl.Latency),
		Local: ratio(f.LocalAccessRatio), MBW: figure(f.MBW), MSR: ratio(f.MSR), NPMR: ratio(f.NPMR), RMBR: ratio(f.RMBR),
	}
	if out.Local.Known() {
		out.LocalHow, out.LocalFrom = f.LocalAccessRatio.How, clip(f.LocalAccessRatio.From, wire.MostLabel)
	}
	// Shares by node, and a rate without an amount, are often estimates where the rest is measured.
	if out.CPUHow = unit.WeakestKnown(of(out.CPU, wl.CPU.How), of(out.Waiting, wl.Waiting.How)); out.CPUHow == unit.HowUnknown {
		out.CPUHow = ofAll(out.CPUByNode, wl.CPUByNode)
	}
	out.CyclesHow = unit.WeakestKnown(wl.Cycles.How, wl.Instructions.How, wl.StallCycles.How, of(out.MSR, f.MSR.How))
	if out.TrafficHow = wl.Traffic.How; out.TrafficHow == unit.HowUnknown {
		out.TrafficHow = of(out.MBW, f.MBW.How)
	}
	out.LatencyHow = of(out.Latency, wl.Latency.How)
	out.PagesHow = unit.WeakestKnown(ofAll(out.AnonByNode, wl.AnonByNode), ofAll(out.FileByNode, wl.FileByNode), of(out.NPMR, f.NPMR.How))
	return out
}

// of is how a figure is known, unknown where it was not kept.
func of[T any](kept unit.Opt[T], how unit.Source) unit.Source {
	if !kept.Known() {
		return unit.HowUnknown
	}
	return how
}

func ofAll[T any](kept []T, by []unit.Value[T]) unit.Source {
	if len(kept) == 0 {
		return unit.HowUnknown
	}
	weakest := unit.HowMeasured
	for _, v := range by {
		weakest = min(weakest, v.How)
	}
	return weakest
}

// figure is unknown where it is no number that can be: the hub would refuse the whole batch.
func figure(v unit.Value[float64]) unit.Opt[float64] {
	x, ok := v.Get()
	return unit.OptOf(x, ok && x >= 0 && x <= maxFigure)
}

const maxFigure = 1e300

func ratio(v unit.Value[unit.Ratio]) unit.Opt[unit.Ratio] {
	x, ok := v.Get()
	return unit.OptOf(x, ok && x.Valid())
}

// whole is empty if a part is unknown.
func whole[T any](by []unit.Value[T]) []T {
	out := make([]T, 0, len(by))
	for _, v := range by {
		x, ok := v.Get()
		if !ok {
			return nil
		}
		out = append(out, x)
	}
	return out
}

func clip(text string, most int) string { return text[:min(len(text), most)] }
