// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"homenode/internal/render"
	"homenode/internal/sim/scenario"
)

// scenarioView is what both outputs show.
type scenarioView struct {
	scenario.Result
	metrics  []figure // of services
	services []string // of all arms, in order of appearance
	base     int      // the arm that the others are compared with; -1: there is none
	subject  int      // the arm that the answer is about; -1: there is none
	claims   []claimed
	answer   []string // the first is the answer
	arms     render.Grid
	tables   []render.Grid // one per service
	notes    []string
	facts    []render.Fact
}

func newScenarioView(r scenario.Result) (scenarioView, error) {
	if err := checkScenario(r); err != nil {
		return scenarioView{}, err
	}
	v := scenarioView{Result: render.Cleaned(r), base: -1, subject: -1}
	v.Arms = slices.DeleteFunc(v.Arms, func(a scenario.Outcome) bool { return len(a.Runs) == 0 })
	if len(v.Arms) > 0 {
		v.base = max(v.arm(v.Against), 0)
		v.subject = v.findSubject()
		v.claims = v.claimed()
	}
	v.services, v.metrics = serviceNames(v.Arms), v.serviceFigures()
	v.answer, v.arms, v.notes, v.facts = v.sentences(), v.armTable(), v.notesOf(r), v.factsOf()
	for _, s := range v.services {
		v.tables = append(v.tables, v.serviceTable(s))
	}
	v.notes = append(v.notes, v.partlyNote()...)
	return v, nil
}

// arm is the index of an arm by its name, -1 if there is none.
func (v scenarioView) arm(name string) int {
	return slices.IndexFunc(v.Arms, func(a scenario.Outcome) bool { return a.Name == name })
}

// findSubject is the arm of the first claim of a change; else the last of MAO's; else the
// last that is not the reference. It does not depend on how well the arms did.
func (v scenarioView) findSubject() int {
	for _, c := range v.Paper {
		if at := v.arm(c.Arm); at >= 0 && at != v.base && !c.Absolute() {
			return at
		}
	}
	for i, a := range slices.Backward(v.Arms) {
		if i != v.base && strings.HasPrefix(a.Policy, "mao") {
			return i
		}
	}
	for i := range slices.Backward(v.Arms) {
		if i != v.base {
			return i
		}
	}
	return -1
}

func serviceNames(arms []scenario.Outcome) []string {
	var names []string
	for _, a := range arms {
		for _, r := range a.Runs {
			for _, s := range r.Services {
				if !slices.Contains(names, s.Name) {
					names = append(names, s.Name)
				}
			}
		}
	}
	return names
}

func replicas(v scenarioView, service string) int {
	for _, r := range v.Arms[v.base].Runs {
		for _, s := range r.Services {
			if s.Name == service {
				return s.Replicas
			}
		}
	}
	return 0
}

// sentences are the answer, and the most important remarks.
func (v scenarioView) sentences() []string {
	switch {
	case len(v.Arms) == 0:
		return []string{"Modelled: there is nothing to show: the result has no runs."}
	case v.subject < 0:
		a := v.Arms[v.base]
		return []string{"Modelled: under " + a.Name + " " + v.localOf(v.base) + " of the DRAM reads were local" +
			rangeOfSeeds(rangeOf(v.local(v.base), render.Ratio), len(a.Runs)) + "; there is no other arm to compare it with."}
	}
	out := []string{v.lead()}
	if parts := v.changes(scenario.CPUPerOp); len(parts) > 0 {
		out = append(out, "CPU time per operation of "+render.List(parts)+".")
	}
	local := v.locals()
	if at := slices.Index(best(local, false), true); at >= 0 && at != v.subject {
		out = append(out, "The largest share of local reads, "+render.Ratio(local[at].Median)+", was that of "+v.Arms[at].Name+".")
	}
	return out
}

// local is the local ratio of an arm.
func (v scenarioView) local(arm int) scenario.Spread {
	return v.figureNamed(scenario.LocalRatio).Over(v.Arms[arm], "")
}

func (v scenarioView) locals() (all []scenario.Spread) {
	for i := range v.Arms {
		all = append(all, v.local(i))
	}
	return all
}

func (v scenarioView) localOf(arm int) string { return render.Ratio(v.local(arm).Median) }

// lead is the answer in one sentence.
func (v scenarioView) lead() string {
	text := "Modelled: under " + v.Arms[v.subject].Name + " " + v.localOf(v.subject) + " of the DRAM reads were local, against " + v.localOf(v.base) + " under " + v.Arms[v.base].Name
	if parts := v.changes(scenario.Latency); len(parts) > 0 {
		text += "; latency of " + render.List(parts)
	}
	return text + "."
}

// mostNamed is how many services a sentence names. Services that got worse are never left
// out.
const mostNamed = 3

func (v scenarioView) changes(metric string) (parts []string) {
	m := v.figureNamed(metric)
	left := 0
	for _, name := range v.services {
		s := m.Against(v.Arms[v.subject], v.Arms[v.base], name)
		switch {
		case s.N == 0:
		case len(parts) >= mostNamed && s.Median <= 1:
			left++
		default:
			parts = append(parts, name+" "+changeWords(s, pairs(v.Arms[v.subject], v.Arms[v.base]), len(parts) == 0))
		}
	}
	if left > 0 {
		parts = append(parts, render.Count(left, "other service")+" not worse")
	}
	return parts
}

// changeWords says "9.7% lower (8.1–11.2% over 5 seeds)"; if only some seeds have the
// figure, it always says how many.
func changeWords(s scenario.Spread, of int, first bool) string {
	low, high, word := 1-s.Max, 1-s.Min, "lower"
	if s.Median > 1 {
		low, high, word = s.Min-1, s.Max-1, "higher"
	}
	switch {
	case s.N < 2 && math.Abs(s.Median-1) < shows:
		return "the same (" + oneOf(of) + ")"
	case s.N < 2:
		return render.Percent(math.Abs(s.Median-1)) + " " + word + " (" + oneOf(of) + ")"
	case s.Min == 1 && s.Max == 1:
		return "the same"
	case low <= 0:
		return "not clearly different (" + changeRange(s.Change()) + ")"
	}
	seeds := ""
	if s.N < of {
		seeds = " over " + strconv.Itoa(s.N) + " of " + render.Count(of, "seed")
	} else if first {
		seeds = " over " + render.Count(s.N, "seed")
	}
	from, to := strings.TrimSuffix(render.Percent(low), "%")+"–", render.Percent(high)
	if render.Percent(low) == to {
		from = ""
	}
	return render.Percent(math.Abs(s.Median-1)) + " " + word + " (" + from + to + seeds + ")"
}

func oneOf(seeds int) string {
	if seeds > 1 {
		return "one of " + render.Count(seeds, "seed")
	}
	return "one seed"
}

// shows is the smallest change that percent prints.
const shows = 0.00005

func rangeOfSeeds(text string, seeds int) string {
	if text == "" {
		return ""
	}
	return " (" + text + " over " + render.Count(seeds, "seed") + ")"
}

// notesOf says what cannot be compared, and how to read the rest.
func (v scenarioView) notesOf(r scenario.Result) (out []string) {
	if v.base < 0 {
		return nil
	}
	for _, a := range r.Arms {
		if len(a.Runs) == 0 {
			out = append(out, render.Printable(a.Name)+" has no runs: it is not shown.")
		}
	}
	base := v.Arms[v.base]
	for i, a := range v.Arms {
		n := pairs(a, base)
		if i != v.base && n < max(len(a.Runs), len(base.Runs)) {
			out = append(out, a.Name+" and "+base.Name+" have "+render.Count(n, "seed")+" in common, of "+strconv.Itoa(len(a.Runs))+" and "+strconv.Itoa(len(base.Runs))+": only those are compared.")
		}
		if len(a.Runs) == 1 {
			out = append(out, a.Name+" has one seed: how far figures vary is unknown.")
		}
	}
	for _, name := range v.services {
		out = append(out, v.serviceNotes(name)...)
	}
	out = append(out, v.ceilingNotes()...)
	if p99 := v.figureNamed("p99"); slices.ContainsFunc(v.Arms, func(a scenario.Outcome) bool { return p99.Over(a, "").N > 0 }) {
		out = append(out, "p99 latency is the mean over periods and replicas of their estimates, not the percentile of all requests together.")
	}
	return append(out, "Binds, unbinds, refused steps and moved memory are counted over the whole run, warm-up included; all else is of the time after it.",
		"IPC is shown, but no arm is best by it: threads that wait by spinning retire instructions too.")
}

// handPolicy is the oracle's policy (sim/runner).
const handPolicy = "hand"

// ceilingNotes say where an arm does better than the search by hand, which otherwise counts
// as the best possible.
func (v scenarioView) ceilingNotes() (out []string) {
	local, cpu := v.figureNamed(scenario.LocalRatio), v.figureNamed(scenario.CPUPerOp)
	for _, hand := range v.Arms {
		if hand.Policy != handPolicy {
			continue
		}
		for _, a := range v.Arms {
			var by []string
			if l, h := local.Over(a, "").Median, local.Over(hand, "").Median; l > h*(1+alike) {
				by = append(by, "more of its reads are local ("+render.Ratio(l)+" against "+render.Ratio(h)+")")
			}
			if s := cpu.Against(a, hand, ""); s.N > 0 && s.Median < 1-alike {
				by = append(by, "an operation takes less CPU time ("+changeWords(s, pairs(a, hand), true)+")")
			}
			if a.Policy != handPolicy && len(by) > 0 {
				out = append(out, a.Name+" does better than "+hand.Name+": "+render.List(by)+". The search by hand is no ceiling there: its oracle is simpler than the world.")
			}
		}
	}
	return out
}

// partlyNote explains (4/5).
func (v scenarioView) partlyNote() []string {
	partly := func(c render.Cell) bool { return c.Partly }
	for _, t := range append(slices.Clone(v.tables), v.arms) {
		if slices.ContainsFunc(t.Rows, func(row []render.Cell) bool { return slices.ContainsFunc(row, partly) }) {
			return []string{partlyText}
		}
	}
	if slices.ContainsFunc(v.claims, func(c claimed) bool { return c.ours().Partly }) {
		return []string{partlyText}
	}
	return nil
}

const partlyText = "(4/5) beside a figure: it is of 4 of 5 seeds. In the others there is none, or it is 0 of the arm to compare with."

func (v scenarioView) serviceNotes(name string) (out []string) {
	latency, throughput := v.figureNamed(scenario.Latency), v.figureNamed(scenario.Throughput)
	has := func(a scenario.Outcome) bool { return latency.Over(a, name).N > 0 }
	for i, a := range v.Arms {
		switch {
		case throughput.Over(a, name).N == 0:
			out = append(out, a.Name+" has no "+name+": nothing of it is compared.")
		case i != v.base && has(a) && !has(v.Arms[v.base]):
			out = append(out, a.Name+" has a latency of "+name+", but "+v.Arms[v.base].Name+" has none to compare it with.")
		}
	}
	if !slices.ContainsFunc(v.Arms, has) {
		out = append(out, name+" has no requests, so it has no latency.")
	}
	base := droppedShare(v.Arms[v.base], name).Median
	for i, a := range v.Arms {
		if s := droppedShare(a, name); i != v.base && s.N > 0 && s.Median > base+0.001 {
			out = append(out, a.Name+" dropped "+render.Percent(s.Median)+" of what was asked of "+name+", "+v.Arms[v.base].Name+" "+render.Percent(base)+": its latency is of those that were served.")
		}
	}
	return out
}

// factsOf are the closing lines.
func (v scenarioView) factsOf() []render.Fact {
	machine := render.Or(v.Machine, unknown)
	if v.Nodes > 0 && v.CPUs > 0 {
		machine += ": " + render.Count(v.Nodes, "node") + ", " + render.Count(v.CPUs, "CPU")
	}
	var seeds []string
	for _, s := range v.Seeds {
		seeds = append(seeds, strconv.FormatUint(s, 10))
	}
	scene := render.Or(v.Scenario, unknown)
	if v.About != "" {
		scene += ": " + v.About
	}
	time, digest := unknown, unknown
	if v.Seconds > 0 {
		time = render.Took(v.Seconds) + " of each run, without the warm-up"
	}
	if v.Digest != "" {
		digest = v.Digest + " (SHA-256 of the scenario's text)"
	}
	return []render.Fact{
		{Name: "how", Text: modelled + " (simulator): nothing here was measured on hardware"},
		{Name: "scenario", Text: scene},
		{Name: "machine", Text: machine},
		{Name: "its figures", Text: render.Or(v.From, unknown)},
		{Name: "time", Text: time},
		{Name: "period", Text: render.Took(v.PeriodS)},
		{Name: "seeds", Text: render.Or(strings.Join(seeds, ", "), unknown)},
		{Name: "digest", Text: digest},
		{Name: "to repeat", Text: "homenode-lab sim run FILE, with the file of that digest: the same seeds give the same figures"},
	}
}
