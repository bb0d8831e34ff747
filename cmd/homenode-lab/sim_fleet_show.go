// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"time"

	"homenode/internal/cli"
	"homenode/internal/render"
	"homenode/internal/sim/fleet"
	"homenode/internal/unit"
)

// countBar shows how many of a run are done: one line that is rewritten on a terminal,
// else a line from time to time.
type countBar struct {
	*cli.StatusLine
	begin time.Time
	of    string
}

// newCountBar is of things that are simulated one by one, such as "servers".
func newCountBar(w io.Writer, of string) *countBar {
	line := cli.NewStatusLine(w)
	line.Every = 10 * time.Second
	return &countBar{line, time.Now(), of}
}

func (b *countBar) show(done, all int) {
	left := time.Duration(float64(time.Since(b.begin)) / float64(done) * float64(all-done)).Round(time.Second)
	tail := fmt.Sprintf("%d of %d %s simulated, about %v left", done, all, b.of, left)
	b.ShowBar(cli.Bar{Share: float64(done) / float64(all), Tail: " " + tail}, "", "homenode-lab: "+tail)
}

func (b *countBar) end() { b.Clear() }

// mostServices is how many services the text lists: those with the most CPU
// time.
const mostServices = 20

func (f simFleetFlags) print(w io.Writer, r fleet.Result) error {
	if f.output == "json" {
		data, err := fleet.Encode(r)
		if err == nil {
			_, err = fmt.Fprintf(w, "%s\n", data)
		}
		return err
	}
	fmt.Fprintln(w, fleetAnswer(r))
	fmt.Fprintf(w, "\n%s, %s workloads per server, %s in windows of %s, without the warm-up; generator %d, seed %d.\n",
		render.Count(r.Services, "service"), render.Amount(r.Workloads), days(r.Seconds), time.Duration(r.PeriodS*float64(time.Second)), r.Generator, r.Seed)
	fmt.Fprintf(w, "Every server: %s, %s, %s. Figures: %s.\n", render.Printable(r.Machine), render.Count(r.Nodes, "node"), render.Count(int(r.CPUs), "CPU"), render.Printable(r.From))
	fleetSides(w, r)
	fleetServices(w, r)
	fleetRows(w, r, f.dataset)
	_, err := fmt.Fprintln(w, "\nAll figures are modelled: no server was measured.")
	return err
}

// With fewServers per side a bootstrap has too few values to draw from.
const fewServers = 20

// fleetAnswer is the main result in one sentence.
func fleetAnswer(r fleet.Result) string {
	if c := r.Change; c != nil {
		few := ""
		if n := min(r.With.Servers, r.Without.Servers); n > 1 && n < fewServers {
			few = " With so few servers the interval is too narrow."
		}
		return fmt.Sprintf("%s: MAO changes CPU time per operation by %s and latency by %s (modelled); %s of DRAM reads are local instead of %s.%s",
			compared(r), changeIn(c.CPU, c.CPUInterval), changeIn(c.Latency, c.LatencyInterval), share(r.With.LocalRatio), share(r.Without.LocalRatio), few)
	}
	switch {
	case r.With != nil:
		return fmt.Sprintf("With MAO %s of DRAM reads are local on %s (modelled); --mao 0.5 or --dataset shows what that saves.", share(r.With.LocalRatio), servers(r.With.Servers))
	}
	return fmt.Sprintf("Without MAO %s of DRAM reads are local on %s (modelled).", share(r.Without.LocalRatio), servers(r.Without.Servers))
}

// compared says which servers are compared.
func compared(r fleet.Result) string {
	if r.Change.Paired {
		return fmt.Sprintf("Paired, the same %s with MAO and without", servers(r.With.Servers))
	}
	return fmt.Sprintf("Unpaired, %s with MAO against %s without it", servers(r.With.Servers), servers(r.Without.Servers))
}

// changeIn adds the interval in which other servers would be.
func changeIn(v *float64, i *fleet.Interval) string {
	switch {
	case v == nil:
		return "unknown"
	case i == nil:
		return change(v) + " (one server: the spread over servers is unknown)"
	}
	return fmt.Sprintf("%s (%s interval over servers: %s to %s)", change(v), render.WholePercent(fleet.Level), render.Change(i.Low), render.Change(i.High))
}

func servers(n int) string { return render.Count(n, "server") }

func days(seconds float64) string {
	return time.Duration(seconds * float64(time.Second)).Round(time.Minute).String()
}

// optional is a figure that may be missing in a file.
func optional(v *float64) unit.Opt[float64] {
	if v == nil {
		return unit.None[float64]()
	}
	return unit.Some(*v)
}

func change(v *float64) string { return render.Show(optional(v), render.Change) }
func share(v *float64) string  { return render.Show(optional(v), render.Percent) }

func fleetSides(w io.Writer, r fleet.Result) {
	for _, s := range []struct {
		name string
		side *fleet.Side
	}{{"Without MAO", r.Without}, {"With MAO", r.With}} {
		if s.side == nil {
			continue
		}
		fmt.Fprintf(w, "\n%s, %s: %s of CPU time used, %s of DRAM reads local", s.name, servers(s.side.Servers), share(&s.side.Utilisation), share(s.side.LocalRatio))
		if b := s.side.Binds; b != nil {
			fmt.Fprintf(w, "; after the warm-up %d bound, %d unbound, %d moved aside, %d refused; unbound %s of the time; %s moved in %s of CPU time",
				b.Binds, b.Unbinds, b.Asides, b.Refused, share(s.side.UnbindRatio), render.Bytes(b.MovedB), render.Seconds(b.MoverCPUS))
		}
		fmt.Fprintln(w, ".")
	}
}

func fleetServices(w io.Writer, r fleet.Result) {
	list := slices.Clone(r.List)
	slices.SortStableFunc(list, func(a, b fleet.ServiceFigures) int {
		return cmp.Or(cmp.Compare(serviceCPU(b), serviceCPU(a)), cmp.Compare(a.Name, b.Name))
	})
	var t render.Table
	for _, head := range []string{"service", "replicas", "local", "with MAO", "latency", "with MAO", "CPU/op", "with MAO"} {
		t.Columns = append(t.Columns, render.Column{Head: head})
	}
	for _, s := range list[:min(len(list), mostServices)] {
		a, b := orNoFigures(s.Without), orNoFigures(s.With)
		t.Add(render.Printable(s.Name), strconv.Itoa(s.Replicas), share(a.LocalRatio), share(b.LocalRatio),
			seconds(a.LatencyS), seconds(b.LatencyS), seconds(a.CPUPerOp), seconds(b.CPUPerOp))
	}
	p := render.TextOptions{UTF8: true}.Terminal()
	p.Line("")
	p.Table(t)
	io.WriteString(w, p.String())
	if more := len(list) - mostServices; more > 0 {
		fmt.Fprintf(w, "%d more in -o json.\n", more)
	}
}

// skipped says why replicas have no row.
func skipped(s fleet.Skipped) string {
	return fmt.Sprintf("%d not bound and too short-lived to be observed, %d bound too briefly, %d only moved aside, %d without requests",
		s.TooBrief, s.TooShort, s.MovedAside, s.NoRequests)
}

func orNoFigures(f *fleet.Figures) fleet.Figures {
	if f == nil {
		return fleet.Figures{}
	}
	return *f
}

// serviceCPU is the CPU time of a service, on the side that exists.
func serviceCPU(s fleet.ServiceFigures) float64 {
	f := s.Without
	if f == nil {
		f = s.With
	}
	if f == nil || f.CPUPerOp == nil {
		return 0
	}
	return f.Ops * *f.CPUPerOp
}

func seconds(v *float64) string {
	if v == nil || math.IsInf(*v, 0) {
		return "-"
	}
	return render.Seconds(*v)
}

func fleetRows(w io.Writer, r fleet.Result, path string) {
	d := r.DataSet
	if d == nil {
		return
	}
	if d.Rows == 0 {
		fmt.Fprintf(w, "\n0 rows: %s.\n", skipped(d.Skipped))
		return
	}
	fmt.Fprintf(w, "\n%d rows in %s, %d of them controls that were never bound; replicas without a row: %s.\n", d.Rows, render.Printable(path), d.Controls, skipped(d.Skipped))
	fmt.Fprintln(w, "A gain is the effect of all bindings of the server, not only of the replica's own: docs/limits.md.")
	fmt.Fprintf(w, "For the rows MAO leaves a replica alone for its first %s: it binds later, and less, than without --dataset.\n", days(r.ObservedS))
	if d.NoiseMeasured {
		fmt.Fprintf(w, "Noise of the figures: %s.\n", render.Printable(d.Noise))
	} else {
		fmt.Fprintln(w, "The figures have no noise: it has not been measured yet.")
	}
}
