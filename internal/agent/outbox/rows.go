// SPDX-License-Identifier: Apache-2.0

package outbox

import (
	"homenode/internal/action"
	"homenode/internal/render/words"
	"homenode/internal/store"
	"homenode/internal/unit"
	"homenode/internal/window"
	"homenode/internal/wire"
)

// Node is a node's row.
func Node(w *window.Window, n *window.Node) store.Node {
	return store.Node{At: w.At, Length: w.Length, Node: n.ID, CPUs: n.CPUs.Len(), Busy: figure(n.CPUBusy), Memory: n.Memory.V, Free: n.Free.V, Traffic: n.Traffic.V,
		BusyHow: of(figure(n.CPUBusy), n.CPUBusy.How), MemoryHow: unit.WeakestKnown(n.Memory.How, n.Free.How), TrafficHow: n.Traffic.How}
}

// Outcome is a step's row.
func Outcome(w *window.Window, o action.Outcome, service string) store.Outcome {
	return store.Outcome{At: w.At, Workload: o.Step.Workload, Service: Clip(service, wire.MostLabel), Action: Clip(o.Step.String(), wire.MostText),
		State: string(o.Status), Sentence: Clip(words.Became(o), wire.MostText)}
}

// Workload is a workload's row: name is what its manager calls it, nodes what it is bound to. Arrays
// by node are whole or unknown.
func Workload(w *window.Window, wl *window.Workload, f window.Features, name string, nodes []int) store.Window {
	out := store.Window{
		At: w.At, Length: w.Length, Workload: wl.ID, Service: Clip(wl.Service, wire.MostLabel), Owner: Clip(wl.Owner, wire.MostLabel),
		Name: Clip(name, wire.MostLabel), Approved: wl.Approved, Bound: nodes,
		CPU: figure(wl.CPU), Waiting: ratio(wl.Waiting), CPUByNode: whole(wl.CPUByNode), AnonByNode: whole(wl.AnonByNode), FileByNode: whole(wl.FileByNode),
		Cycles: wl.Cycles.V, Instructions: wl.Instructions.V, Stalls: wl.StallCycles.V, LocalReads: wl.LocalLoads.V, RemoteReads: wl.RemoteLoads.V,
		Traffic: wl.Traffic.V, Latency: figure(wl.Latency),
		Local: ratio(f.LocalAccessRatio), MBW: figure(f.MBW), MSR: ratio(f.MSR), NPMR: ratio(f.NPMR), RMBR: ratio(f.RMBR),
	}
	if out.Local.Known() {
		out.LocalHow, out.LocalFrom = f.LocalAccessRatio.How, Clip(f.LocalAccessRatio.From, wire.MostLabel)
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

// Clip cuts a text off at what the wire takes.
func Clip(text string, most int) string { return text[:min(len(text), most)] }
