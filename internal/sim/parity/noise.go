// SPDX-License-Identifier: Apache-2.0

package parity

import "math"

// Noise is how much one service differs from process to process in the lab: in pairs of an
// unpinned process and one that is bound to a node, one after the other.
type Noise struct {
	Schema   int            `json:"schema"`
	How      string         `json:"how"` // always "modelled (lab)"
	Origin   Origin         `json:"origin"`
	Shape    string         `json:"shape"`
	Args     string         `json:"args"`
	Unpinned []NoiseFigures `json:"unpinned"`
	Bound    []NoiseFigures `json:"bound"`
	// Relative standard deviations. Gain is of latency and CPU per operation, as 1 − bound
	// / unpinned, pair by pair; its deviations are absolute.
	DeviationUnpinned NoiseFigures `json:"relative_deviation_unpinned"`
	DeviationBound    NoiseFigures `json:"relative_deviation_bound"`
	Gain              NoiseGain    `json:"gain"`
	DeviationGain     NoiseGain    `json:"deviation_gain"`
}

// NoiseFigures are the figures of one process, over some model-seconds. Counts are for user
// mode, except CPUPerOp.
type NoiseFigures struct {
	MBW       float64 `json:"mbw"` // bytes per model-second
	MSR       float64 `json:"msr"`
	NPMR      float64 `json:"npmr"`
	RMBR      float64 `json:"rmbr"`
	Local     float64 `json:"local_ratio"`
	LatencyUS float64 `json:"latency_us"`         // mean of requests, in model time
	CPUPerOp  float64 `json:"cycles_per_op"`      // per unit of work, including the kernel's part
	UserPerOp float64 `json:"user_cycles_per_op"` // without the kernel's part
}

// NoiseGain is the gain of binding.
type NoiseGain struct {
	Latency  float64 `json:"latency"`
	CPUPerOp float64 `json:"cycles_per_op"`
	Local    float64 `json:"local_ratio"` // a difference
}

func (f NoiseFigures) list() [8]float64 {
	return [8]float64{f.MBW, f.MSR, f.NPMR, f.RMBR, f.Local, f.LatencyUS, f.CPUPerOp, f.UserPerOp}
}

func figuresOf(v [8]float64) NoiseFigures {
	return NoiseFigures{v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7]}
}

// Summarise computes deviations and gains from the pairs.
func (n *Noise) Summarise() {
	n.DeviationUnpinned, n.DeviationBound = relative(n.Unpinned), relative(n.Bound)
	var latency, cpu, local []float64
	for i, a := range n.Unpinned {
		b := n.Bound[i]
		latency = append(latency, 1-b.LatencyUS/a.LatencyUS)
		cpu = append(cpu, 1-b.CPUPerOp/a.CPUPerOp)
		local = append(local, b.Local-a.Local)
	}
	n.Gain.Latency, n.DeviationGain.Latency = spread(latency)
	n.Gain.CPUPerOp, n.DeviationGain.CPUPerOp = spread(cpu)
	n.Gain.Local, n.DeviationGain.Local = spread(local)
}

func relative(all []NoiseFigures) NoiseFigures {
	var out [8]float64
	for k := range out {
		var v []float64
		for _, f := range all {
			v = append(v, f.list()[k])
		}
		if mean, deviation := spread(v); mean != 0 {
			out[k] = deviation / mean
		}
	}
	return figuresOf(out)
}

// spread is the mean and the standard deviation of a sample.
func spread(v []float64) (mean, deviation float64) {
	for _, x := range v {
		mean += x
	}
	mean /= float64(len(v))
	for _, x := range v {
		deviation += float64((x - mean) * (x - mean))
	}
	return mean, math.Sqrt(deviation / float64(max(1, len(v)-1)))
}
