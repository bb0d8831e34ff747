// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"homenode/internal/store"
	"homenode/internal/unit"
)

// Full is a window in which everything is known: the largest that a store keeps.
func Full(r *rand.Rand, at time.Time, w int) store.Window {
	win := Window(r, at, 5*w)
	win.Workload = fmt.Sprintf("/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod%08x_1d2c_4c1b_9d0e_%012x.slice", w, w)
	win.Service, win.Name = fmt.Sprintf("team-%d/service-%d", w%7, w%10), fmt.Sprintf("team-%d/service-%d-%08x", w%7, w%10, w)
	share := func() unit.Opt[unit.Ratio] { return unit.Some(unit.Ratio(r.Float64())) }
	count := func() unit.Opt[uint64] { return unit.Some(r.Uint64N(1e11)) }
	win.Waiting, win.NPMR, win.RMBR, win.Local = share(), share(), share(), share()
	win.Cycles, win.Instructions, win.Stalls = count(), count(), count()
	win.Latency, win.MBW, win.LatencyHow = unit.Some(r.Float64()/100), unit.Some(r.Float64()*1e10), unit.HowEstimated
	win.CPUByNode = []float64{float64(r.IntN(4000)) / 1000, float64(r.IntN(4000)) / 1000}
	win.AnonByNode = []unit.Bytes{unit.Bytes(r.IntN(1<<22)) << 12, unit.Bytes(r.IntN(1<<22)) << 12}
	win.FileByNode = []unit.Bytes{unit.Bytes(r.IntN(1<<20)) << 12, unit.Bytes(r.IntN(1<<20)) << 12}
	return win
}

// FullNode is a node of which everything is known.
func FullNode(r *rand.Rand, at time.Time, length time.Duration, node int) store.Node {
	return store.Node{At: at, Length: length, Node: node, CPUs: 32, Busy: unit.Some(r.Float64() * 32), Memory: unit.Some(unit.TiB), Free: unit.Some(unit.Bytes(r.Int64N(1 << 40))), Traffic: unit.Some(unit.Bytes(r.Int64N(1e12))),
		BusyHow: unit.HowMeasured, MemoryHow: unit.HowMeasured, TrafficHow: unit.HowMeasured}
}

// Questions are all ready-made ones, about data of Full on host "host-0".
func Questions(from, until time.Time) map[string]store.Question {
	w := Full(rand.New(rand.NewPCG(1, 1)), from, 0)
	all := map[string]store.Question{}
	for _, q := range []store.Question{
		{Topic: store.Services}, {Topic: store.Hosts}, {Topic: store.Gain}, {Topic: store.Events}, {Topic: store.Unbound},
		{Topic: store.Instances, Service: w.Service}, {Topic: store.Workloads, Host: "host-0"},
		{Topic: store.History, Host: "host-0", Workload: w.Workload}, {Topic: store.History, Service: w.Service},
	} {
		q.From, q.Until = from, until
		name := string(q.Topic)
		if q.Topic == store.History && q.Service != "" {
			name += " of a service"
		}
		all[name] = q
	}
	return all
}

// Slowest asks every question three times of each span before until, and reports the slowest
// median. Times are odd, so that all levels take part.
func Slowest(t *testing.T, s store.Store, until time.Time, spans ...time.Duration) (worst time.Duration, which string) {
	t.Helper()
	for _, span := range spans {
		for name, q := range Questions(until.Add(-span-1234567*time.Millisecond), until) {
			var took []time.Duration
			for range 3 {
				start := time.Now()
				if table := Ask(t, s, q); len(table.Rows) == 0 && q.Topic != store.Events && q.Topic != store.Unbound {
					t.Errorf("%s over %s: no rows", name, span)
				}
				took = append(took, time.Since(start))
			}
			median := max(min(took[0], took[1]), min(max(took[0], took[1]), took[2]))
			t.Logf("%-22s over %8s: %v", name, span, median.Round(time.Millisecond))
			if median > worst {
				worst, which = median, fmt.Sprintf("%s over %s", name, span)
			}
		}
	}
	return worst, which
}
