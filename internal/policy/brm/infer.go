// SPDX-License-Identifier: Apache-2.0

package brm

import (
	"time"

	"homenode/internal/unit"
)

// Which workloads are candidates, where the operator does not say (the paper's future
// work). It matters where a workload's threads run if
//
//  1. its threads wait for memory: stall share = Σ W / Σ cycles ≥ MinStall, and
//  2. the cost of a request differs by node: response = mean over its threads that know
//     two nodes or more of (most - least) / least own penalty, less the natural variation of
//     a penalty, and
//     varies by itself, and
//  3. both together are worth a move: gain = stall share × response ≥ MinGain.
//
// Each thread is compared with itself. Two threads whose memory is on different nodes both
// respond; in a mean over threads by node their responses would cancel.
//
// Hysteresis: a verdict changes after InferPeriods in a row, and a yes becomes a no only at
// half the limits. Without a figure nothing changes.
//
// A workload that waits for memory and was only ever on one node has no response. It gets a
// trial: TrialThreads of its threads explore, for TrialLength. If the trial finds nothing,
// they go home, and the next trial is TrialEvery later, doubling. So the price of not
// knowing is bounded, and a workload that does not wait for memory never pays it.

// Memory is what is remembered of a workload.
type Memory struct {
	Workload string  `json:"workload"`
	Verdict  Verdict `json:"verdict,omitempty"`
	Against  int     `json:"against,omitempty"` // periods in a row that contradict the verdict
	// Stall is its stall share, smoothed.
	Stall unit.Opt[float64] `json:"stall,omitzero"`
	// Trial is the end of the present trial, or of the last; Trials is the number of
	// trials.
	Trial  time.Duration `json:"trial_ns,omitempty"`
	Trials int           `json:"trials,omitempty"`
}

// Verdict is the inferred sensitivity; "": none yet.
type Verdict string

// The verdicts.
const (
	Sensitive   Verdict = "sensitive"
	Insensitive Verdict = "insensitive"
)

// verdict holds this window's figures.
type verdict struct {
	tagged         bool // by its operator
	stall          unit.Opt[float64]
	response, gain unit.Opt[float64]
}

// judge is number 6 of the package comment.
func (r *round) judge() {
	candidates := 0
	for i := range r.loads {
		l, m := &r.loads[i], &r.next.Workloads[i]
		if l.count == 0 {
			continue
		}
		r.figures(l, m)
		if tag, ok := r.w.Workloads[i].Sensitive.Get(); ok {
			l.verdict.tagged, l.candidate = true, tag
		} else if r.cfg.Infer {
			r.infer(l, m)
			l.candidate = m.Verdict == Sensitive
			l.trial = !l.candidate && r.next.Now < m.Trial
		}
		if l.candidate {
			candidates += l.count
		}
	}
	r.mostExplorers = max(1, int(float64(r.cfg.Explorers)*float64(candidates)))
}

// figures computes numbers 1 to 3 of this file.
func (r *round) figures(l *load, m *Memory) {
	var waits, cycles float64
	var response mean
	for k := l.first; k < l.first+l.count; k++ {
		th, t := r.threads[k].th, &r.next.Threads[k]
		c, ok := th.Cycles.Get()
		if w, ok2 := th.UncoreWaits.Get(); ok && ok2 {
			waits, cycles = waits+min(float64(w), float64(c)), cycles+float64(c)
		}
		if spread, ok := spreadOf(r.next.visits(k)); ok {
			response.add(max(0, spread-t.Noise))
		}
		if t.Explores {
			r.explorers++
		}
	}
	if cycles > 0 { // 1
		now := waits / cycles
		if was, ok := m.Stall.Get(); ok {
			now = was + float64(r.cfg.Smoothing*(now-was))
		}
		m.Stall = unit.Some(now)
	}
	v := &l.verdict
	v.stall = m.Stall
	v.response = unit.OptOf(response.get()) // 2
	if stall, ok := v.stall.Get(); ok && v.response.Known() {
		v.gain = unit.Some(stall * v.response.Or(0)) // 3
	}
}

// spreadOf is (most - least) / least of a thread's own penalty over nodes; false if it
// knows fewer than two nodes.
func spreadOf(visits []Visit) (float64, bool) {
	least, most, n := float32(0), float32(0), 0
	for k := range visits {
		if v := &visits[k]; v.Known {
			if n++; n == 1 {
				least, most = v.Own, v.Own
			}
			least, most = min(least, v.Own), max(most, v.Own)
		}
	}
	if n < 2 || least <= 0 {
		return 0, false
	}
	return float64(most)/float64(least) - 1, true
}

// infer changes the verdict after InferPeriods in a row that contradict it.
func (r *round) infer(l *load, m *Memory) {
	says := r.says(l, m.Verdict)
	if says == "" || says == m.Verdict {
		m.Against = 0
	} else if m.Against++; m.Against >= r.cfg.InferPeriods {
		m.Verdict, m.Against = says, 0
		if says == Sensitive {
			m.Trials = 0
		}
	}
	r.try(l, m)
}

// says returns the verdict of this window alone; "": it has none.
func (r *round) says(l *load, was Verdict) Verdict {
	stall, ok := l.verdict.stall.Get()
	half := 1.0
	if was == Sensitive {
		half = 0.5
	}
	gain, known := l.verdict.gain.Get()
	switch {
	case !ok:
		return ""
	case stall < float64(r.cfg.MinStall)*half:
		return Insensitive
	case !known:
		return ""
	case gain >= float64(r.cfg.MinGain)*half:
		return Sensitive
	}
	return Insensitive
}

// try begins a trial of a workload that waits for memory and has no response, or that was
// found insensitive long ago. A trial that ended without any figure found nothing.
func (r *round) try(l *load, m *Memory) {
	if m.Verdict == Sensitive || r.cfg.TrialThreads == 0 || r.next.Now < m.Trial {
		return
	}
	if m.Trials > 0 && m.Verdict == "" && m.Against == 0 {
		m.Verdict = Insensitive
	}
	wait := r.cfg.TrialEvery << min(max(0, m.Trials-1), mostDoublings)
	if stall, ok := l.verdict.stall.Get(); !ok || stall < float64(r.cfg.MinStall) || m.Trials > 0 && r.next.Now < m.Trial+wait {
		return
	}
	m.Trial, m.Trials = r.next.Now+r.cfg.TrialLength, min(m.Trials+1, manyPeriods)
}
