// SPDX-License-Identifier: Apache-2.0

package window

import (
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"homenode/internal/unit"
)

func count(n uint64, how unit.Source) unit.Value[uint64] {
	return unit.ValueOf(n, how, how.String()+" counter")
}

// The better source wins, and the figure carries its source; only an estimate has an
// error.
func TestLocalAccessOrder(t *testing.T) {
	w := Workload{CPUByNode: cpusOn(1, 0), AnonByNode: bytesOn(unit.MiB, unit.MiB), FileByNode: bytesOn(0, 0)}
	for _, step := range []struct {
		about string
		add   func()
		want  unit.Ratio
		how   unit.Source
		from  string
		off   unit.Ratio
	}{
		{"pages", func() {}, 0.5, unit.HowEstimated, "page share", pagesErrorOneSided},
		{"apart", func() { w.CPUByNode = cpusOn(1, 1) }, 0.5, unit.HowEstimated, "page share", pagesErrorApart},
		{"no fault", func() { w.LocalFaults, w.RemoteFaults = count(0, unit.HowEstimated), count(0, unit.HowEstimated) }, 0.5, unit.HowEstimated, "page share", pagesErrorApart},
		{"hint faults", func() { w.LocalFaults, w.RemoteFaults = count(90, unit.HowMeasured), count(10, unit.HowMeasured) }, 0.9, unit.HowEstimated, "counter", faultsError},
		{"resctrl", func() {
			w.Traffic, w.LocalTraffic = unit.Measured(unit.Bytes(1000), "mbm_total_bytes"), unit.Measured(unit.Bytes(800), "mbm_local_bytes")
		}, 0.8, unit.HowMeasured, "mbm_local_bytes, mbm_total_bytes", 0},
		{"more local than all", func() { w.LocalTraffic = unit.Measured(unit.Bytes(1001), "mbm_local_bytes") }, 1, unit.HowMeasured, "mbm", 0},
		{"DRAM reads", func() { w.LocalLoads, w.RemoteLoads = count(70, unit.HowModelled), count(30, unit.HowMeasured) }, 0.7, unit.HowModelled, "modelled counter, measured counter", 0},
		{"no read", func() { w.LocalLoads, w.RemoteLoads = count(0, unit.HowMeasured), count(0, unit.HowMeasured) }, 1, unit.HowMeasured, "mbm", 0},
	} {
		step.add()
		v, off := LocalAccessRatio(&w), LocalAccessError(&w)
		if v.Or(-1) != step.want || v.How != step.how || !strings.Contains(v.From, step.from) || off.Or(0) != step.off {
			t.Errorf("%s: %v ± %v", step.about, v, off)
		}
		if LocalAccess(&w) != v.V {
			t.Errorf("%s: policies go by %v, screens show %v", step.about, LocalAccess(&w), v)
		}
	}
	one := Workload{CPUByNode: cpusOn(1), AnonByNode: bytesOn(unit.MiB), FileByNode: bytesOn(0)}
	if v, off := LocalAccessRatio(&one), LocalAccessError(&one); v.Or(0) != 1 || off != unit.Some(unit.Ratio(0)) {
		t.Errorf("of one node: %v ± %v", v, off)
	}
	if v := LocalAccessRatio(&Workload{}); v.Known() || LocalAccessError(&Workload{}).Known() {
		t.Errorf("of nothing: %v", v)
	}
}

// Where resctrl's traffic is read it is the bandwidth. Without it the bandwidth is
// unknown, and not 0.
func TestBandwidth(t *testing.T) {
	w := Workload{}
	if v := FeaturesOf(w, time.Second); v.MBW.Known() || v.RMBR.Known() {
		t.Errorf("of nothing: %v, %v", v.MBW, v.RMBR)
	}
	w.LocalLoads, w.RemoteLoads = count(10, unit.HowMeasured), count(30, unit.HowModelled)
	if v := FeaturesOf(w, 2*time.Second); v.MBW.Or(0) != 1280 || v.MBW.How != unit.HowModelled || v.RMBR.Or(0) != 0.75 || v.RMBR.How != unit.HowModelled {
		t.Errorf("by reads: %v, %v", v.MBW, v.RMBR)
	}
	w.Traffic = unit.Measured(unit.Bytes(4000), "mbm_total_bytes")
	if v := FeaturesOf(w, 2*time.Second); v.MBW != unit.Measured(2000.0, "mbm_total_bytes") {
		t.Errorf("by traffic: %v", v.MBW)
	}
	w = Workload{Traffic: w.Traffic, LocalTraffic: unit.Measured(unit.Bytes(1000), "mbm_local_bytes")}
	if v := FeaturesOf(w, 2*time.Second).RMBR; v.Or(0) != 0.75 || v.How != unit.HowMeasured {
		t.Errorf("remote share by traffic: %v", v)
	}
}

// The constants hold on the worst shape that was measured: they are the largest P90 of
// the decision's table, rounded up to a percent. A new measurement changes both.
func TestErrorsOfTheWorstShape(t *testing.T) {
	text, err := os.ReadFile("../../docs/decisions/0029-estimates.md")
	if err != nil {
		t.Fatal(err)
	}
	for row, is := range map[string]unit.Ratio{
		"CPU time, or pages, on one node, shape ": pagesErrorOneSided,
		"both on several nodes, shape ":           pagesErrorApart,
		"hint faults, shape ":                     faultsError,
	} {
		var worst float64
		shapes := 0
		for line := range strings.Lines(string(text)) {
			cells := strings.Split(line, "|")
			if len(cells) < 7 || !strings.HasPrefix(strings.TrimSpace(cells[1]), row) {
				continue
			}
			p90, err := strconv.ParseFloat(strings.TrimSpace(cells[5]), 64)
			if err != nil {
				t.Fatalf("%q: %v", line, err)
			}
			worst, shapes = max(worst, p90), shapes+1
		}
		if off := float64(is) - worst; shapes < 2 || off < 0 || off >= 0.01 {
			t.Errorf("%s…: ±%v is said, the worst of %d shapes is %v", row, is, shapes, worst)
		}
	}
	for _, said := range []string{ErrorBasis, "0.28 for hint faults", "0.71 where CPU time or pages are on one node", "0.66 where both are on several"} {
		if !strings.Contains(string(text), said) {
			t.Errorf("the decision does not say %q", said)
		}
	}
}

func TestWithin(t *testing.T) {
	known := func(how unit.Source) Features {
		f := Features{LocalAccessError: unit.Some(unit.Ratio(0.346))}
		f.LocalAccessRatio.How = how
		return f
	}
	far := known(unit.HowEstimated)
	far.LocalAccessError = unit.None[unit.Ratio]()
	for want, f := range map[string]Features{" ± 35%": known(unit.HowEstimated), " ± ?": far, "": known(unit.HowMeasured)} {
		if got := f.Within(" ± "); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
