// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"slices"
	"strconv"
	"strings"

	"homenode/internal/profile"
	"homenode/internal/render"
)

// section is one part of a profile, for all faces.
type section struct {
	ID, Title string
	Sub       string // which figures, and their unit
	Tables    []render.Grid
	Notes     []string       // what is unknown or was left out, and why
	Panels    []render.Panel // on the page only
	Findings  []profile.RaoFinding
}

// view is what all faces show.
type view struct {
	profile.Profile
	headline string
	facts    []render.Fact
	sections []section
}

func newView(p profile.Profile) view {
	v := view{Profile: render.Cleaned(p)}
	v.headline, v.facts = headline(v.Profile), facts(v.Profile)
	for _, make := range []func(profile.Profile) section{
		latencySection, bandwidthSection, mixSection, loadedSection, cacheSection, sharingSection, coreSection,
		migrationSection, policySection, raoSection,
	} {
		if s := make(v.Profile); len(s.Tables)+len(s.Notes) > 0 {
			v.sections = append(v.sections, s)
		}
	}
	return v
}

// headline is the machine, and how its figures are known.
func headline(p profile.Profile) string {
	return "Profile of " + render.Or(p.Machine.CPUModel, "a machine of an unknown CPU model") + ": " + render.How(p.How) + "; " +
		render.Count(p.Machine.CPUs, "CPU") + ", " + nodes(p.Machine)
}

func nodes(f profile.Fingerprint) string {
	text, bare := render.Count(len(f.Nodes), "node"), 0
	for i := range f.Nodes {
		if i < len(f.NodeCPUs) && f.NodeCPUs[i].IsEmpty() {
			bare++
		}
	}
	if bare > 0 {
		text += ", " + strconv.Itoa(bare) + " of them without CPUs"
	}
	return text
}

func facts(p profile.Profile) []render.Fact {
	return []render.Fact{
		{Name: "how known", Text: render.How(p.How)},
		{Name: "clock", Text: render.Or(p.Clock, unknown)},
		{Name: "machine", Text: render.Or(p.Origin, unknown)},
		{Name: "date", Text: render.Date(p.Date)},
		{Name: "took", Text: render.Took(p.Seconds)},
		{Name: "complete", Text: render.Or(parts(p.Done), "no part")},
		{Name: "command", Text: render.Or(p.Command, unknown)},
		{Name: "homenode", Text: render.Or(p.Version, unknown)},
	}
}

func parts(list []profile.Part) string {
	var names []string
	for _, part := range list {
		names = append(names, string(part))
	}
	return strings.Join(names, ", ")
}

// caveats are the sentences to read before the figures.
func caveats(p profile.Profile) []string {
	var out []string
	for _, c := range p.Caveats {
		text := render.Or(c.Text, c.Code)
		if len(c.Parts) > 0 {
			text += " (" + parts(c.Parts) + ")"
		}
		out = append(out, text)
	}
	for _, c := range p.Contradictions() {
		out = append(out, "Contradiction: "+c.String())
	}
	return out
}

// skips are the pieces of some parts that were left out.
func skips(p profile.Profile, of ...profile.Part) []string {
	var out []string
	for _, s := range p.Skipped {
		if !slices.Contains(of, s.Part) {
			continue
		}
		what := ""
		if s.What != "" {
			what = ", " + s.What
		}
		out = append(out, "not measured"+what+": "+render.Or(s.Why, "no reason is given"))
	}
	return out
}

// unknowns collects reasons, each with the figures it is about.
type unknowns struct {
	order []string
	of    map[string][]string
}

func (u *unknowns) addFigure(f profile.Figure, what string) {
	if !f.Median.Known() {
		u.say(why(f), what)
	}
}

func (u *unknowns) say(reason, what string) {
	if u.of == nil {
		u.of = map[string][]string{}
	}
	if len(u.of[reason]) == 0 {
		u.order = append(u.order, reason)
	}
	u.of[reason] = append(u.of[reason], what)
}

// mostUnknown is the number of figures that a reason names: a matrix has hundreds.
const mostUnknown = 6

func (u *unknowns) notes() []string {
	var out []string
	for _, reason := range u.order {
		of := u.of[reason]
		if n := len(of); n > mostUnknown {
			of = append(slices.Clone(of[:mostUnknown]), render.Count(n-mostUnknown, "other"))
		}
		out = append(out, unknown+": "+reason+": "+strings.Join(of, ", "))
	}
	return out
}
