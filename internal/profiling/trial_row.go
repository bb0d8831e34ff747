// SPDX-License-Identifier: Apache-2.0

package profiling

import "homenode/internal/model/gain"

// TrialNames say what was tried, for the row.
type TrialNames struct {
	Host, Workload, Application string
	Kind                        string // as it is; "": the application
}

// TrialRow is what a model of gains learns from a trial. ok is false where it has no two halves to
// compare, no look before, or a metric that did not mean work.
func TrialRow(s State, n TrialNames) (row gain.Row, ok bool) {
	halves := NewTrialReport(s, "", "").Halves
	first, again := halves[0].Value, halves[1].Value
	if s.Before == nil || !first.Known() || !again.Known() {
		return row, false
	}
	f := s.Before.Features
	if n.Kind == "" {
		n.Kind = gain.Hashed("service", n.Application)
	}
	row = gain.Row{
		Server: gain.Hashed("server", n.Host), Service: gain.Hashed("service", n.Application), Replica: gain.Hashed("replica", n.Host+"\x00"+n.Workload),
		Kind: n.Kind, Source: s.Job.Source, Machine: s.Job.Machine, Seed: s.Job.Seed,
		MBW: f.MBW, MSR: f.MSR, NPMR: f.NPMR, RMBR: f.RMBR, CPU: f.CPU, IPC: f.IPC, MPKI: f.LLCMPKI, CPUOfNode: s.Before.CPUOfNode, Busy: s.Before.Busy, Idlest: s.Before.Idlest,
		Windows: int32(len(s.Samples)), Neighbours: int32(s.Before.Neighbours),
		GainLatency: pointer(first.Get()), GainLatencyAgain: pointer(again.Get()),
	}
	row.GainCPU = pointer(gainOf(s.cpuTimes(s.half(false))).Value.Get())
	row.GainCPUAgain = pointer(gainOf(s.cpuTimes(s.half(true))).Value.Get())
	return row, true
}
