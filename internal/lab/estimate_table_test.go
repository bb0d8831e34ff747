// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"encoding/json"

	"homenode/internal/unit"
	"homenode/internal/window"
)

// errorsOf are errors of scenarios; each is the mean over its windows.
type errorsOf []float64

func (e errorsOf) String() string {
	if len(e) == 0 {
		return "0 | – | – | – | –"
	}
	slices.Sort(e)
	sum := 0.0
	for _, v := range e {
		sum += v
	}
	return fmt.Sprintf("%d | %.3f | %.3f | %.3f | %.3f", len(e), sum/float64(len(e)), e.at(0.5), e.at(0.9), e[len(e)-1])
}

// at is the nearest rank.
func (e errorsOf) at(share float64) float64 {
	slices.Sort(e)
	return e[max(0, int(math.Ceil(share*float64(len(e))))-1)]
}

// estimateErrors collects errors under names, in the order of their first
// appearance.
type estimateErrors struct {
	names []string
	of    map[string]errorsOf
}

func (c *estimateErrors) addEstimate(name string, v unit.Opt[float64]) {
	if c.of == nil {
		c.of = map[string]errorsOf{}
	}
	f, ok := v.Get()
	if _, here := c.of[name]; !here {
		c.names, c.of[name] = append(c.names, name), nil
	}
	if ok {
		c.of[name] = append(c.of[name], f)
	}
}

func (c *estimateErrors) print(w io.Writer, head string) {
	fmt.Fprintf(w, "\n| %s | n | mean | median | P90 | largest |\n|---|---|---|---|---|---|\n", head)
	for _, n := range c.names {
		fmt.Fprintf(w, "| %s | %v |\n", n, c.of[n])
	}
}

// scarce is the number of DRAM reads per second of CPU time below which the traffic
// is negligible: a hundredth of a chase through memory in the lab.
const scarce = 30_000

// printEstimates prints the tables of docs/decisions/0029-estimates.md.
func printEstimates(w io.Writer, f estimateFile) {
	p := func(v unit.Opt[float64]) string {
		if x, ok := v.Get(); ok {
			return fmt.Sprintf("%.3f", x)
		}
		return "?"
	}
	var all, class, pagesKind, hintsKind estimateErrors
	fmt.Fprintf(w, "| shape | scenario | exact | CPU × pages | error | balancing: exact | CPU × pages | error | hint faults | error |\n|---|---|---|---|---|---|---|---|---|---|\n")
	for _, r := range f.Rows {
		s, b := r.Still, r.Balanced
		fmt.Fprintf(w, "| %s | %s | %s | %s | %s | %s | %s | %s | %s | %s |\n", r.Shape, r.Scenario, p(s.Exact), p(s.Pages), p(s.PagesError),
			p(b.Exact), p(b.Pages), p(b.PagesError), p(b.Hints), p(b.HintsError))
		for _, on := range []string{"both shapes", "shape " + r.Shape} {
			all.addEstimate("CPU × pages, nothing moves, "+on, s.PagesError)
			all.addEstimate("CPU × pages, balancing, "+on, b.PagesError)
			all.addEstimate("hint faults, "+on, b.HintsError)
		}
		pagesKind.addEstimate(r.Kind, s.PagesError)
		hintsKind.addEstimate(r.Kind, b.HintsError)
		for _, ph := range []estimatePhase{s, b} {
			name := "CPU time, or pages, on one node"
			if ph.apart() {
				name = "both on several nodes"
			}
			class.addEstimate(name+", both shapes", ph.PagesError)
			class.addEstimate(name+", shape "+r.Shape, ph.PagesError)
			if ph.DRAM < scarce {
				class.addEstimate("fewer than 30,000 DRAM reads a CPU-second", ph.PagesError)
			}
		}
	}
	slices.Sort(all.names)
	slices.Sort(class.names)
	all.print(w, "estimate")
	class.print(w, "CPU × pages, both phases, by what the window shows")
	pagesKind.print(w, "CPU × pages, nothing moves, by kind")
	hintsKind.print(w, "hint faults, by kind")
}

// apart is the split of package window, of the means over windows.
func (p estimatePhase) apart() bool {
	n := 0
	for _, e := range p.Each {
		w := window.Workload{}
		for i := range e.CPU {
			w.CPUByNode = append(w.CPUByNode, unit.Measured(e.CPU[i], ""))
			if i < len(e.Bytes) {
				w.AnonByNode, w.FileByNode = append(w.AnonByNode, unit.Measured(e.Bytes[i], "")), append(w.FileByNode, unit.Measured(unit.Bytes(0), ""))
			}
		}
		if w.OnSeveral() {
			n++
		}
	}
	return 2*n > len(p.Each)
}

// TestEstimateTables prints the tables of a record again (HOMENODE_ESTIMATE_TABLES).
func TestEstimateTables(t *testing.T) {
	path := os.Getenv("HOMENODE_ESTIMATE_TABLES")
	if path == "" {
		t.Skip("HOMENODE_ESTIMATE_TABLES is not set to a record of scripts/bench-estimate.sh")
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var f estimateFile
	if err := json.Unmarshal(data, &f); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	printEstimates(&out, f)
	fmt.Println(out.String())
}
