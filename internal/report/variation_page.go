// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"slices"
	"strings"

	"homenode/internal/doctor"
	"homenode/internal/experiment"
	"homenode/internal/render"
	"homenode/internal/unit"
)

// variationPage is what both faces show.
type variationPage struct {
	headline  []string
	tables    []render.Table
	sentences []string
	line      string // to be pasted; "" = none
	notes     []string
}

// variationTable has a row for each arm; the first column and the last hold words.
func variationTable(heads []string, rows [][]string) render.Table {
	t := render.Table{Rows: rows}
	for i, h := range heads {
		t.Columns = append(t.Columns, render.Column{Head: h, Left: i == 0 || i == len(heads)-1})
	}
	return t
}

func newVariationPage(v experiment.Variation) variationPage {
	v = cleanVariation(v)
	s := scaleOf(v)
	costs, missing := costTable(v, s)
	p := variationPage{headline: variationHeadline(v), sentences: sentences(v)}
	if len(v.Arms) > 0 {
		p.tables = []render.Table{timeTable(v, s), costs}
	}
	p.line = shellLine(v.Verdict.RepeatableLine)
	p.notes = append(variationNotes(v), v.Notes...)
	if len(missing) > 0 && len(v.Arms) > 0 {
		p.notes = append(p.notes, "Not known of any arm: "+render.List(missing)+". CPU time in the lab is not the model's; an RSS below homenode's own is not measurable.")
	}
	return p
}

// cleanVariation makes every text safe to show: the command may come from anywhere. Words of a
// command keep their blanks; Quote shows characters that do not print.
func cleanVariation(v experiment.Variation) experiment.Variation {
	command, line := v.Command, v.Verdict.RepeatableLine
	v = render.Cleaned(v)
	v.Command, v.Verdict.RepeatableLine = command, line
	return v
}

func shellLine(argv []string) string {
	return strings.Join(render.Each(argv, doctor.Quote), " ")
}

func variationHeadline(v experiment.Variation) []string {
	return []string{
		"Run time of " + shellLine(v.Command),
		fmt.Sprintf("%s; %s, %s; %d runs of each arm after %d that do not count; %s in all", v.Machine, render.How(v.How), v.Clock, v.Repeats, v.Warmups,
			render.Took(v.Seconds)),
	}
}

func timeTable(v experiment.Variation, s scale) render.Table {
	first := unknown
	if len(v.Arms) > 0 {
		first = v.Arms[0].Name
	}
	var rows [][]string
	for i, a := range v.Arms {
		rows = append(rows, []string{a.Name, s.of(a.Time.Median), s.span(a.Time.Min, a.Time.Max), variationOf(a.Time),
			interval(s, a.Time.CI), against(i, a.Against), armVerdict(i, a.Against)})
	}
	return variationTable([]string{"arm", "median " + s.name, "min–max", "CV", sure(v), "× " + first, ""}, rows)
}

// sure is the heading of the interval: "95% CI", or what the runs allow.
func sure(v experiment.Variation) string {
	for _, a := range v.Arms {
		if c := a.Time.CI.Coverage; c > 0 && c < experiment.Nominal {
			return render.WholePercent(c) + " CI"
		}
	}
	return render.WholePercent(experiment.Nominal) + " CI"
}

// costTable leaves out figures that are unknown for every arm; a note names them.
func costTable(v experiment.Variation, s scale) (t render.Table, missing []string) {
	columns := []struct {
		head string
		of   func(experiment.Placed) string
	}{
		{"user " + strings.TrimPrefix(s.name, "model-"), func(a experiment.Placed) string { return render.Show(a.User, s.of) }},
		{"system", func(a experiment.Placed) string { return render.Show(a.System, s.of) }},
		{"largest RSS", func(a experiment.Placed) string { return render.Show(a.MaxRSS, render.Bytes) }},
		{"minor faults", func(a experiment.Placed) string { return render.Show(a.MinorFaults, render.Whole) }},
		{"major", func(a experiment.Placed) string { return render.Show(a.MajorFaults, render.Whole) }},
		{"waited", func(a experiment.Placed) string { return render.Show(a.Waits, render.Whole) }},
		{"preempted", func(a experiment.Placed) string { return render.Show(a.Preempted, render.Whole) }},
		{"placed on", func(a experiment.Placed) string { return a.About }},
	}
	heads, rows := []string{"arm"}, render.Each(v.Arms, func(a experiment.Placed) []string { return []string{a.Name} })
	for _, c := range columns {
		if !slices.ContainsFunc(v.Arms, func(a experiment.Placed) bool { return c.of(a) != unknown }) {
			missing = append(missing, c.head)
			continue
		}
		heads = append(heads, c.head)
		for i, a := range v.Arms {
			rows[i] = append(rows[i], c.of(a))
		}
	}
	return variationTable(heads, rows), missing
}

// sentences are the answers.
func sentences(v experiment.Variation) []string {
	if len(v.Arms) == 0 || v.Arms[0].Time.N < 2 {
		return []string{"There are no runs to judge by."}
	}
	out := []string{ownVariation(v.Arms[0])}
	if text := longRuns(v); text != "" {
		out = append(out, text)
	}
	if len(v.Arms) > 1 {
		out = append(out, fastest(v), steadiest(v))
	}
	if v.Verdict.BelowStartUp {
		out = append(out, fmt.Sprintf("A run takes less than %v: that is mostly the start of the program, which says nothing about placement.", experiment.StartUp))
	}
	return out
}

// ownVariation is about the first arm. Cates (SAS) takes run-to-run variation of up to
// 40 % as a sign that placement is left to chance.
func ownVariation(a experiment.Placed) string {
	cv, _ := a.Time.Variation()
	text := fmt.Sprintf("From run to run, %s varies by %s (coefficient of variation), and the longest run took %s more than the shortest",
		a.Name, render.Percent(cv), render.Percent(a.Time.Max/a.Time.Min-1))
	if len(a.Run) == 0 {
		text += "; up to 40% is known where placement is left to chance (Cates, SAS)"
	}
	return text + "."
}

// longRuns counts runs that stand out: a comparison of spreads cannot distinguish one
// run in ten on the wrong node from chance, but a person should see it.
func longRuns(v experiment.Variation) string {
	const beyond = 1.1
	var each []string
	for _, a := range v.Arms {
		n := 0
		for _, t := range a.Time.Values {
			if t > beyond*a.Time.Median {
				n++
			}
		}
		if n > 0 {
			each = append(each, fmt.Sprintf("%d of %d of %s", n, a.Time.N, a.Name))
		}
	}
	if len(each) == 0 {
		return ""
	}
	return "Runs that took over 10% more than their arm's median: " + render.List(each) + "."
}

func fastest(v experiment.Variation) string {
	d := v.Verdict
	for _, a := range v.Arms[1:] {
		if r, ok := a.Against.Get(); !ok || r.CI.Coverage < experiment.Nominal {
			return "Which arm is fastest cannot be told from so few runs: it takes 4 of each, better 10."
		}
	}
	if len(d.FastestTies) == len(v.Arms)-1 {
		return "No arm is faster than another beyond the noise of the runs."
	}
	text := d.Fastest + " is fastest"
	for i, a := range v.Arms {
		if i > 0 && a.Name == d.Fastest {
			text += fmt.Sprintf(": %s × %s", against(i, a.Against), v.Arms[0].Name)
		}
	}
	return text + butNot(d.FastestTies)
}

func steadiest(v experiment.Variation) string {
	d := v.Verdict
	switch {
	case d.FewForSpread:
		return "Which arm is steadiest cannot be told from so few runs: it takes 5 of each, better 10."
	case len(d.SteadiestTies) == len(v.Arms)-1:
		return fmt.Sprintf("No arm is steadier than another beyond chance; %s varied least.", d.Steadiest)
	}
	text := d.Steadiest + " is steadiest"
	for _, a := range v.Arms {
		if cv, ok := a.Time.Variation(); ok && a.Name == d.Steadiest {
			text += ", with a variation of " + render.Percent(cv)
		}
	}
	return text + butNot(d.SteadiestTies)
}

func butNot(ties []string) string {
	if len(ties) == 0 {
		return "."
	}
	verb := "differ"
	if len(ties) == 1 {
		verb = "differs"
	}
	return fmt.Sprintf("; %s %s from it within the noise.", render.List(ties), verb)
}

// variationNotes explain the figures.
func variationNotes(v experiment.Variation) []string {
	out := []string{"CV: standard deviation over mean. CI: of the median, by order statistics; of ratios, Moses' interval of the rank test. Neither assumes a distribution."}
	if len(v.Arms) > 2 {
		out = append(out, "Each comparison is by itself: where there is nothing but noise, one of 20 calls a difference.")
	}
	for _, a := range v.Arms {
		if c := a.Time.CI.Coverage; c > 0 && c < experiment.Nominal {
			out = append(out, fmt.Sprintf("%d runs give the median an interval of %s confidence at most, its min–max: 95%% takes 6.", a.Time.N, render.Percent(c)))
			break
		}
	}
	if v.How == unit.HowModelled {
		out = append(out, "Times are of the lab's model: they hold among each other, not against a real machine's. Faults and switches are the guest kernel's.")
	}
	return out
}
