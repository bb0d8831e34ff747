// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"encoding/json"
	"fmt"
	"math"
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

// victimReport is what `homenode-load victim` writes.
type victimReport struct {
	MHz    float64 `json:"mhz"`
	Phases []struct {
		Phase   int    `json:"phase"`
		Ops     uint64 `json:"ops"`
		Start   uint64 `json:"start_cycles"`
		End     uint64 `json:"end_cycles"`
		Latency struct {
			P50  *float64 `json:"p50"` // model-µs
			P99  *float64 `json:"p99"`
			P999 *float64 `json:"p999"`
			Max  *float64 `json:"max"`
		} `json:"latency_us"`
	} `json:"phases"`
	Series struct {
		Start   uint64   `json:"start_cycles"`
		Window  uint64   `json:"window_cycles"`
		Ops     []uint64 `json:"ops"`
		Longest []uint64 `json:"longest_cycles"`
	} `json:"series"`
}

// rate is operations per model-second between two times; NaN if there is no whole
// window.
func (v victimReport) rate(from, to uint64) float64 {
	ops, windows := uint64(0), 0
	for i, n := range v.Series.Ops {
		at := v.Series.Start + uint64(i)*v.Series.Window
		if at >= from && at+v.Series.Window <= to {
			ops, windows = ops+n, windows+1
		}
	}
	return v.perSecond(ops, windows)
}

func (v victimReport) perSecond(ops uint64, windows int) float64 {
	if windows == 0 {
		return math.NaN()
	}
	return float64(ops) / (float64(windows) * float64(v.Series.Window) / v.MHz / 1e6)
}

// lowest is the rate of the slowest stretch of a given length, in model-seconds, between
// two times. The effect of a move that took this long there is at most that bad.
func (v victimReport) lowest(from, to uint64, seconds float64) float64 {
	return v.against(from, to, seconds, func(uint64) float64 { return 1 })
}

// against is lowest as a share of the expected rate, in operations per
// model-second. If the stretch is longer than the time between the two, all of
// that time is used.
func (v victimReport) against(from, to uint64, seconds float64, expected func(at uint64) float64) float64 {
	var ops, want []float64
	for i, n := range v.Series.Ops {
		if at := v.Series.Start + uint64(i)*v.Series.Window; at >= from && at+v.Series.Window <= to {
			ops, want = append(ops, float64(n)), append(want, expected(at)*v.window())
		}
	}
	n := min(len(ops), max(1, int(seconds/v.window())))
	worst := math.NaN()
	for i := 0; n > 0 && i+n <= len(ops); i++ {
		if share := sum(ops[i:i+n]) / sum(want[i:i+n]); !(share >= worst) {
			worst = share
		}
	}
	return worst
}

// window is in model-seconds.
func (v victimReport) window() float64 { return float64(v.Series.Window) / v.MHz / 1e6 }

func sum(of []float64) (s float64) {
	for _, x := range of {
		s += x
	}
	return s
}

// atHome is when the victim changed from one rate to another: the time of the step
// between the two rates that fits the windows best, by least squares. For a ramp it is
// the middle.
func (v victimReport) atHome(from, to uint64, before, after float64) uint64 {
	at, best, cost := from, 0.0, 0.0 // cost: of a step behind this window, against one at from
	for i, n := range v.Series.Ops {
		begin := v.Series.Start + uint64(i)*v.Series.Window
		if begin < from || begin+v.Series.Window > to {
			continue
		}
		b, a := float64(n)-before*v.window(), float64(n)-after*v.window()
		if cost += b*b - a*a; cost < best {
			at, best = begin+v.Series.Window, cost
		}
	}
	return at
}

// longest is the longest operation that ended between two times, in model-ms.
func (v victimReport) longest(from, to uint64) (ms float64) {
	for i, c := range v.Series.Longest {
		if at := v.Series.Start + uint64(i)*v.Series.Window; at+v.Series.Window > from && at <= to {
			ms = max(ms, float64(c)/v.MHz/1e3)
		}
	}
	return ms
}

// quiet is longest for the whole windows between two times; NaN if there is none.
func (v victimReport) quiet(from, to uint64) float64 {
	most := math.NaN()
	for i, c := range v.Series.Longest {
		ms := float64(c) / v.MHz / 1e3
		if at := v.Series.Start + uint64(i)*v.Series.Window; at >= from && at+v.Series.Window <= to && !(ms <= most) {
			most = ms
		}
	}
	return most
}

// tail is the 99.9th percentile of the operations that began in a phase, in
// model-ms.
func (v victimReport) tail(phase int) float64 {
	for _, p := range v.Phases {
		if p.Phase == phase && p.Latency.P999 != nil {
			return *p.Latency.P999 / 1e3
		}
	}
	return math.NaN()
}

func TestDecodeVictim(t *testing.T) {
	var v victimReport
	// 50 MHz, windows of 10 ms: 500,000 cycles
	const text = `{"mhz":50,"phases":[{"phase":2,"ops":7,"latency_us":{"count":7,"p50":1,"p99":2,"p999":3000,"max":4,"buckets":[]}}],
		"series":{"start_cycles":1000,"window_cycles":500000,"past_ops":0,"ops":[5,5,0,1,5,5],"longest_cycles":[1,1,0,1000000,1,1]}}`
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatal(err)
	}
	for what, got := range map[string][2]float64{
		"all":             {v.rate(0, 1<<40), 350},
		"one window":      {v.rate(1000, 501000), 500},
		"none":            {v.lowest(0, 1<<40, 0.02), 50},
		"longer":          {v.lowest(0, 1<<40, 9), 350},
		"against":         {v.against(0, 1<<40, 0.02, func(at uint64) float64 { return 100 + 400*float64(at/2_001_000) }), 0.5},
		"longest":         {v.longest(0, 1<<40), 20},
		"longest earlier": {v.longest(0, 900000), 1.0 / 50000},
		"quiet":           {v.quiet(1000, 1501000), 1.0 / 50000},
		"quiet, all":      {v.quiet(1000, 2001000), 20},
		"tail":            {v.tail(2), 3},
	} {
		if math.Abs(got[0]-got[1]) > 1e-9 {
			t.Errorf("%s: %v, want %v", what, got[0], got[1])
		}
	}
	if !math.IsNaN(v.rate(0, 400000)) || !math.IsNaN(v.tail(3)) || !math.IsNaN(v.lowest(0, 400000, 1)) {
		t.Error("an unknown figure has a value")
	}
}

// A mover slows a victim down by a tenth, and the victim's memory comes home in the
// middle.
func TestDecisionAtHome(t *testing.T) {
	v := victimReport{MHz: 50}
	v.Series.Window = 500000
	for i := range 200 {
		v.Series.Ops = append(v.Series.Ops, uint64(90+90*min(1, max(0, (i-80))/40)))
	}
	end := 200 * v.Series.Window
	home := v.atHome(0, end, 10000, 20000)
	share := v.against(0, end, 2, func(at uint64) float64 {
		if at < home {
			return 10000
		}
		return 20000
	})
	if home != 120*v.Series.Window || math.Abs(share-0.9) > 1e-9 {
		t.Errorf("at home at %d, %.3f of what is to be expected", home/v.Series.Window, share)
	}
	if never := v.atHome(0, 80*v.Series.Window, 10000, 20000); never != 80*v.Series.Window {
		t.Errorf("at home at %d, and it is not", never/v.Series.Window)
	}
	if at := v.atHome(130*v.Series.Window, end, 10000, 20000); at != 130*v.Series.Window {
		t.Errorf("at home at %d, and it was before", at/v.Series.Window)
	}
}

// The output of benchRun for a move by two calls (50 MHz: 50,000,000 cycles per
// second).
const printedRun = `== before
{"schema":1,"bytes":{"anon":[0,100],"cache":[0,50]},"swapped_bytes":0,"processes":1}
== begin
{"state":"on","asked":"on","phase":2,"model_cycles":100000000,"mhz":50}
== move
{"clock":"model","mhz":50,"start_cycles":110000000,"end_cycles":160000000,"return":3,"error":null}
{"clock":"model","mhz":50,"start_cycles":170000000,"end_cycles":195000000,"return":0,"error":null}
== exit
0
== end
{"state":"on","model_cycles":200000000,"mhz":50}
== after
{"schema":1,"bytes":{"anon":[100,0],"cache":[0,50]},"swapped_bytes":0,"processes":1}
== victim
{"mhz":50,"phases":[],"series":{"start_cycles":70000000,"window_cycles":500000,"ops":[OPS],"longest_cycles":[OPS]}}
== errors
`

func TestDecodeBenchRun(t *testing.T) {
	ops := strings.TrimSuffix(strings.Repeat("5,", 60)+strings.Repeat("1,", 200)+strings.Repeat("10,", 100), ",")
	s, err := readRun(scenario{victim: true}, migratesIt, strings.ReplaceAll(printedRun, "OPS", ops))
	if err != nil {
		t.Fatal(err)
	}
	got := fmt.Sprint(s.Seconds, s.WithStart, s.CallMS, s.OpsBefore, s.OpsDuring, s.OpsAfter, s.Left, s.TailMS.Known(), s.Stayed)
	if want := "1.5 2 1000 500 100 1000 map[anon:0 B cache:50 B] false 3"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	failed := strings.Replace(printedRun, "exit\n0", "exit\n1", 1)
	if _, err := readRun(scenario{}, migratesIt, failed); err == nil {
		t.Error("a move that failed counts")
	}
	refused := strings.Replace(printedRun, `"return":0,"error":null`, `"return":-1,"error":"no"`, 1)
	if _, err := readRun(scenario{}, migratesIt, refused); err == nil {
		t.Error("a call that failed counts")
	}
}

// A shell accepts every script of the bench, and no placeholder is left in
// them.
func TestDecisionBenchScripts(t *testing.T) {
	for _, sc := range append(scenarios(), scenariosV1()...) {
		for _, c := range sc.contestants {
			script := benchScript(sc, c, 3500_000)
			if out, err := exec.Command("sh", "-n", "-c", script).CombinedOutput(); err != nil {
				t.Errorf("%s, %s: %v: %s\n%s", sc.name, c.name, err, out, script)
			}
			if regexp.MustCompile(`\b(MEMS|START|FILES|QUIET|SCRIPT|RATE)\b`).MatchString(script) || c.share > 0 != strings.Contains(script, "--rate 3500kB/s") {
				t.Errorf("%s, %s:\n%s", sc.name, c.name, script)
			}
		}
	}
}
