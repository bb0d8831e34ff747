// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"math"

	"homenode/internal/sim/parity"
)

// simNoise is how much one service differs from process to process in the lab: in pairs of an
// unpinned process and one that is bound to a node, one after the other.
type simNoise struct {
	Schema   int            `json:"schema"`
	How      string         `json:"how"` // always "modelled (lab)"
	Origin   parity.Origin  `json:"origin"`
	Shape    string         `json:"shape"`
	Args     string         `json:"args"`
	Unpinned []noiseFigures `json:"unpinned"`
	Bound    []noiseFigures `json:"bound"`
	// Relative standard deviations. Gain is of latency and CPU per operation, as 1 − bound
	// / unpinned, pair by pair; its deviations are absolute.
	DeviationUnpinned noiseFigures `json:"relative_deviation_unpinned"`
	DeviationBound    noiseFigures `json:"relative_deviation_bound"`
	Gain              noiseGain    `json:"gain"`
	DeviationGain     noiseGain    `json:"deviation_gain"`
}

// noiseFigures are the figures of one process, over some model-seconds. Counts are for user
// mode, except CPUPerOp.
type noiseFigures struct {
	MBW       float64 `json:"mbw"` // bytes per model-second
	MSR       float64 `json:"msr"`
	NPMR      float64 `json:"npmr"`
	RMBR      float64 `json:"rmbr"`
	Local     float64 `json:"local_ratio"`
	LatencyUS float64 `json:"latency_us"`         // mean of requests, in model time
	CPUPerOp  float64 `json:"cycles_per_op"`      // per unit of work, including the kernel's part
	UserPerOp float64 `json:"user_cycles_per_op"` // without the kernel's part
}

// noiseGain is the gain of binding.
type noiseGain struct {
	Latency  float64 `json:"latency"`
	CPUPerOp float64 `json:"cycles_per_op"`
	Local    float64 `json:"local_ratio"` // a difference
}

func (f noiseFigures) list() [8]float64 {
	return [8]float64{f.MBW, f.MSR, f.NPMR, f.RMBR, f.Local, f.LatencyUS, f.CPUPerOp, f.UserPerOp}
}

func noiseFiguresOf(v [8]float64) noiseFigures {
	return noiseFigures{v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7]}
}

// summarise computes deviations and gains from the pairs.
func (n *simNoise) summarise() {
	n.DeviationUnpinned, n.DeviationBound = relativeNoise(n.Unpinned), relativeNoise(n.Bound)
	var latency, cpu, local []float64
	for i, a := range n.Unpinned {
		b := n.Bound[i]
		latency = append(latency, 1-b.LatencyUS/a.LatencyUS)
		cpu = append(cpu, 1-b.CPUPerOp/a.CPUPerOp)
		local = append(local, b.Local-a.Local)
	}
	n.Gain.Latency, n.DeviationGain.Latency = noiseSpread(latency)
	n.Gain.CPUPerOp, n.DeviationGain.CPUPerOp = noiseSpread(cpu)
	n.Gain.Local, n.DeviationGain.Local = noiseSpread(local)
}

func relativeNoise(all []noiseFigures) noiseFigures {
	var out [8]float64
	for k := range out {
		var v []float64
		for _, f := range all {
			v = append(v, f.list()[k])
		}
		if mean, deviation := noiseSpread(v); mean != 0 {
			out[k] = deviation / mean
		}
	}
	return noiseFiguresOf(out)
}

// noiseSpread is the mean and the standard deviation of a sample.
func noiseSpread(v []float64) (mean, deviation float64) {
	for _, x := range v {
		mean += x
	}
	mean /= float64(len(v))
	for _, x := range v {
		deviation += float64((x - mean) * (x - mean))
	}
	return mean, math.Sqrt(deviation / float64(max(1, len(v)-1)))
}
