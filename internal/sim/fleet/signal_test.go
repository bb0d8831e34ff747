// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"math"
	"slices"
	"testing"
)

// The data set of real worlds has something to learn, with the sign that MAO found:
// workloads that read more memory gain more, and so do those that read more of it remotely.
func TestRowsHaveSignal(t *testing.T) {
	c := realFleet(8, 5*60)
	c.DataSet, c.Workers = true, 2
	r, rows := runFleet(t, c)
	if len(rows) < 60 {
		t.Fatalf("%d rows, want 60 or more: %+v", len(rows), r.DataSet)
	}
	for _, row := range rows {
		whole(t, row)
	}
	gain := func(r Row) *float64 { return r.GainLatencyTrue }
	for name, f := range map[string]func(Row) *float64{
		"mbw":  func(r Row) *float64 { return r.MBW },
		"msr":  func(r Row) *float64 { return r.MSR },
		"rmbr": func(r Row) *float64 { return r.RMBR },
	} {
		if rho := rankCorrelation(rows, f, gain); !(rho > 0.1) {
			t.Errorf("gains and %s: rank correlation %.2f, want more than 0.1", name, rho)
		}
	}
	if rho := rankCorrelation(rows, func(r Row) *float64 { return r.LocalAccessRatio }, gain); !(rho < -0.1) {
		t.Errorf("gains and local access ratio: rank correlation %.2f, want less than -0.1", rho)
	}
	gains := column(rows, gain)
	slices.Sort(gains)
	low, high := gains[len(gains)/10], gains[len(gains)*9/10]
	t.Logf("%d rows, gains %.3f … %.3f … %.3f", len(rows), low, gains[len(gains)/2], high)
	if high-low < 0.05 || gains[len(gains)/2] <= 0 {
		t.Errorf("gains of %v to %v: all alike, or none", low, high)
	}
	if *r.Change.CPU >= 0 || *r.Change.Latency >= 0 || *r.Change.LocalRatio <= 0 {
		t.Errorf("what MAO changed: CPU %v, latency %v, local ratio %v", *r.Change.CPU, *r.Change.Latency, *r.Change.LocalRatio)
	}
}

// whole checks that a row has all that a model needs, within its range.
func whole(t *testing.T, r Row) {
	t.Helper()
	if r.WindowsBefore < 60 || r.WindowsCompared < 30 || r.How != "modelled" || !r.NoiseMeasured || r.GeneratorVersion != GeneratorVersion || len(r.Replica) != 16 {
		t.Errorf("%+v", r)
	}
	for name, f := range map[string]*float64{"msr": r.MSR, "npmr": r.NPMR, "rmbr": r.RMBR, "local": r.LocalAccessRatio, "local on": r.LocalAccessRatioOn, "neighbours": r.NeighboursBound} {
		if f == nil || !(*f >= 0 && *f <= 1) {
			t.Errorf("%s of %s is no ratio", name, r.Replica)
		}
	}
	for name, f := range map[string]*float64{"mbw": r.MBW, "cpu": r.CPU, "rss": r.RSS, "ipc": r.IPC, "mpki": r.LLCMPKI} {
		if f == nil || !(*f > 0) || math.IsInf(*f, 0) {
			t.Errorf("%s of %s is unknown, or nothing", name, r.Replica)
		}
	}
	if (r.CPULimit == nil) != (r.LoadFactor == nil) || r.GainLatency == nil || r.GainCPU == nil || r.GainIPC == nil {
		t.Errorf("%s lacks a gain or a load factor: %+v", r.Replica, r)
	}
	if r.MBW != nil && r.LocalAccessRatio != nil && r.RMBR != nil && math.Abs(*r.LocalAccessRatio+*r.RMBR-1) > 1e-9 {
		t.Errorf("%s: local %v and remote %v", r.Replica, *r.LocalAccessRatio, *r.RMBR)
	}
}

func column(rows []Row, f func(Row) *float64) (all []float64) {
	for _, r := range rows {
		if v := f(r); v != nil {
			all = append(all, *v)
		} else {
			all = append(all, 0)
		}
	}
	return all
}

// rankCorrelation is Spearman's.
func rankCorrelation(rows []Row, a, b func(Row) *float64) float64 {
	x, y := ranks(column(rows, a)), ranks(column(rows, b))
	n := float64(len(rows))
	mean, cov, vx, vy := (n-1)/2, 0.0, 0.0, 0.0
	for i := range x {
		cov += (x[i] - mean) * (y[i] - mean)
		vx += (x[i] - mean) * (x[i] - mean)
		vy += (y[i] - mean) * (y[i] - mean)
	}
	return cov / math.Sqrt(vx*vy)
}

func ranks(v []float64) []float64 {
	order := make([]int, len(v))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int {
		switch {
		case v[i] < v[j]:
			return -1
		case v[i] > v[j]:
			return 1
		}
		return 0
	})
	r := make([]float64, len(v))
	for place, i := range order {
		r[i] = float64(place)
	}
	return r
}

// Real worlds, too, give the same figures with any number of workers.
func TestRealWorldsAreTheSame(t *testing.T) {
	c := realFleet(4, 100)
	c.DataSet = true
	r, rows := runFleet(t, c)
	want := text(t, r, rows)
	c.Workers = 3
	r, rows = runFleet(t, c)
	if text(t, r, rows) != want {
		t.Error("another result with 3 workers")
	}
}
