// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"homenode/internal/profile"
	"homenode/internal/render"
	"homenode/internal/unit"
)

func mixSection(p profile.Profile) section {
	s := section{ID: "mixes", Title: "Reads and writes mixed", Notes: skips(p, profile.Mixes),
		Sub: "All CPUs, each on its own node's memory; reads and writes together."}
	r := ratesOf(figuresOf(p.Mixes, func(m profile.Mix) profile.Figure { return m.Figure })...)
	t := render.Grid{Heads: []string{"lines read : written", r.unit}, Keys: 1}
	var u unknowns
	for _, m := range p.Mixes {
		name := fmt.Sprintf("%d : %d", m.Reads, m.Writes)
		t.AddText(name, show(m.Figure, r.print))
		u.addFigure(m.Figure, name)
	}
	return s.with(t, u)
}

// with adds a table that has rows, and its unknown figures.
func (s section) with(t render.Grid, u unknowns) section {
	if len(t.Rows) > 0 {
		s.Tables = append(s.Tables, t)
	}
	s.Notes = append(u.notes(), s.Notes...)
	return s
}

func loadedSection(p profile.Profile) section {
	s := section{ID: "loaded", Title: "Latency under load", Notes: skips(p, profile.Loaded), Panels: curvePanels(p),
		Sub: "One CPU waits for its loads while others read, with a pause that is shorter from column to column."}
	r := loadedRates(p.Loaded)
	for _, c := range p.Loaded {
		t := render.Grid{Caption: render.Or(c.Name, "unnamed") + " (" + arrow(c.From, c.To) + ")", Heads: []string{"pause"}, Keys: 1}
		load, latency, wide := []string{r.unit}, []string{"ns"}, []string{"ns ±"}
		var u unknowns
		for _, pt := range c.Points {
			t.Heads = append(t.Heads, strconv.Itoa(pt.Pause))
			load, latency = append(load, show(pt.Bandwidth, r.print)), append(latency, render.Show(pt.Latency.Median, render.Tenths))
			wide = append(wide, wideSpread(pt.Latency))
			u.addFigure(pt.Bandwidth, fmt.Sprintf("%s, bandwidth at %d", render.Or(c.Name, "unnamed"), pt.Pause))
			u.addFigure(pt.Latency, fmt.Sprintf("%s, latency at %d", render.Or(c.Name, "unnamed"), pt.Pause))
		}
		t.AddText(load...)
		t.AddText(latency...)
		if slices.ContainsFunc(wide[1:], func(s string) bool { return s != "" }) {
			t.AddText(wide...)
		}
		if len(c.Points) == 0 {
			t.Rows = nil
			u.say("it has no points", render.Or(c.Name, "unnamed"))
		}
		s = s.with(t, u)
	}
	return s
}

// loadedRates has one unit for all curves: people compare them.
func loadedRates(curves []profile.Curve) rates {
	var all []profile.Figure
	for _, c := range curves {
		all = append(all, figuresOf(c.Points, func(pt profile.CurvePoint) profile.Figure { return pt.Bandwidth })...)
	}
	return ratesOf(all...)
}

func cacheSection(p profile.Profile) section {
	s := section{ID: "caches", Title: "Caches", Notes: skips(p, profile.Caches), Panels: workingSetPanels(p),
		Sub: "A level's size is between the largest working set that still fits and the next that was tried."}
	t := render.Grid{Heads: []string{"level", "fits", "no longer", "firmware says", "ns a hit"}, Keys: 1}
	var u unknowns
	for _, c := range p.Caches {
		name := "L" + strconv.Itoa(c.Level)
		t.AddText(name, c.Size.String(), c.Next.String(), c.Firmware.String(), show(c.Latency, render.Tenths))
		if !c.Size.Known() {
			u.say(render.Or(c.Why, "no reason is given"), "size of "+name)
		}
		u.addFigure(c.Latency, "latency of "+name)
	}
	s = s.with(t, u)
	scan := render.Grid{Caption: "Latency by working set", Heads: []string{"working set", "ns a load"}, Keys: 1, Long: true}
	for _, w := range p.WorkingSets {
		scan.AddText(w.Bytes.String(), show(w.Figure, render.Tenths))
	}
	return s.with(scan, unknowns{})
}

// apart is the key by which pairs of CPUs are grouped.
type apart struct {
	level    profile.Level
	distance unit.Opt[int]
}

// levels orders groups from near to far.
var levels = []profile.Level{profile.SameCore, profile.SameLLC, profile.SameNode, profile.Between}

func (a apart) String() string {
	switch a.level {
	case profile.SameCore:
		return "same core (SMT)"
	case profile.SameLLC:
		return "same LLC"
	case profile.SameNode:
		return "same node, other LLC"
	case profile.Between:
		if d, ok := a.distance.Get(); ok {
			return "other node, distance " + strconv.Itoa(d)
		}
		return "other node, distance unknown"
	}
	return render.Or(string(a.level), unknown)
}

func near(a, b apart) int {
	return cmp.Or(cmp.Compare(slices.Index(levels, a.level), slices.Index(levels, b.level)), cmp.Compare(a.level, b.level),
		cmp.Compare(a.distance.Or(1<<20), b.distance.Or(1<<20)))
}

// groupBy groups things that are equally far apart, from near to far.
func groupBy[T any](list []T, key func(T) apart) ([]apart, map[apart][]T) {
	by := map[apart][]T{}
	var keys []apart
	for _, v := range list {
		k := key(v)
		if k.level != profile.Between {
			k.distance = unit.None[int]()
		}
		if len(by[k]) == 0 {
			keys = append(keys, k)
		}
		by[k] = append(by[k], v)
	}
	slices.SortFunc(keys, near)
	return keys, by
}

func pair(cpus [2]int) string { return fmt.Sprintf("%d and %d", cpus[0], cpus[1]) }

func sharingSection(p profile.Profile) section {
	s := section{ID: "sharing", Title: "CPUs that share a last-level cache", Notes: skips(p, profile.CacheSharing),
		Sub: "Two CPUs, each with a working set that fills most of the cache alone: those that share it slow each other down."}
	t := render.Grid{Heads: []string{"pairs of CPUs", "pairs", "share it?", "alone ns", "together ns"}, Keys: 1}
	long := render.Grid{Caption: "Every pair", Heads: []string{"CPUs", "apart", "alone ns", "together ns", "shared"}, Keys: 2, Long: true}
	var u unknowns
	keys, by := groupBy(p.CacheSharing, func(x profile.SharingTest) apart { return apart{x.Level, x.Distance} })
	for _, k := range keys {
		var alone, together []profile.Figure
		for _, x := range by[k] {
			alone, together = append(alone, x.Alone), append(together, x.Together)
			u.addFigure(x.Alone, pair(x.CPUs)+" alone")
			u.addFigure(x.Together, pair(x.CPUs)+" together")
			if !x.Shared.Known() && x.Alone.Median.Known() && x.Together.Median.Known() {
				u.say("the two figures are too close to tell", pair(x.CPUs))
			}
			long.AddText(pair(x.CPUs), k.String(), show(x.Alone, render.Tenths), show(x.Together, render.Tenths), render.YesNo(x.Shared))
		}
		t.AddText(k.String(), strconv.Itoa(len(by[k])), sharedAll(by[k]), between(alone, render.Tenths), between(together, render.Tenths))
	}
	return s.with(t, u).with(long, unknowns{})
}

// sharedAll is the verdict for pairs that are equally far apart.
func sharedAll(list []profile.SharingTest) string {
	said := map[string]int{}
	for _, x := range list {
		said[render.YesNo(x.Shared)]++
	}
	var parts []string
	for _, verdict := range []string{"yes", "no", unknown} {
		switch n := said[verdict]; {
		case n == len(list):
			return verdict
		case n > 0:
			parts = append(parts, fmt.Sprintf("%d %s", n, verdict))
		}
	}
	return strings.Join(parts, ", ")
}

// between is the median of several figures' medians, with their extremes if those are
// far from it.
func between(list []profile.Figure, print func(float64) string) string {
	f := median(list)
	m, ok := f.Median.Get()
	if !ok {
		return unknown
	}
	if s, ok := spread(f); ok && s > showSpread {
		return fmt.Sprintf("%s (%s–%s)", print(m), print(f.Min), print(f.Max))
	}
	return print(m)
}

func median(list []profile.Figure) profile.Figure {
	var v []float64
	for _, f := range list {
		if m, ok := f.Median.Get(); ok {
			v = append(v, m)
		}
	}
	if len(v) == 0 {
		return profile.Figure{}
	}
	slices.Sort(v)
	n := len(v)
	return profile.Figure{Median: unit.Some((v[(n-1)/2] + v[n/2]) / 2), Min: v[0], Max: v[n-1], N: n}
}

func coreSection(p profile.Profile) section {
	s := section{ID: "core-to-core", Title: "From core to core", Notes: skips(p, profile.CoreToCore),
		Sub: "Of a load of a line that another CPU has just modified, in ns; by how far apart the two are."}
	t := render.Grid{Heads: []string{"reader and writer", "pairs", "ns", "lowest", "highest"}, Keys: 1}
	long := render.Grid{Caption: "Every pair", Heads: []string{"reader and writer", "apart", "ns"}, Keys: 2, Long: true}
	var u unknowns
	keys, by := groupBy(p.CoreToCore, func(x profile.CoreFigure) apart { return apart{x.Level, x.Distance} })
	for _, k := range keys {
		var all []profile.Figure
		for _, x := range by[k] {
			all = append(all, x.Figure)
			u.addFigure(x.Figure, pair(x.CPUs))
			long.AddText(pair(x.CPUs), k.String(), show(x.Figure, render.Tenths))
		}
		m := median(all)
		low, high := unit.OptOf(m.Min, m.N > 0), unit.OptOf(m.Max, m.N > 0)
		t.AddText(k.String(), strconv.Itoa(len(by[k])), render.Show(m.Median, render.Tenths), render.Show(low, render.Tenths), render.Show(high, render.Tenths))
	}
	return s.with(t, u).with(long, unknowns{})
}

func migrationSection(p profile.Profile) section {
	s := section{ID: "migration", Title: "Moving pages", Notes: skips(p, profile.Migrating),
		Sub: "From a node (row) to a node (column), by the kernel (move_pages)."}
	var sizes []unit.Bytes
	for _, m := range p.Migration {
		if !slices.Contains(sizes, m.PageSize) {
			sizes = append(sizes, m.PageSize)
		}
	}
	var notes []string
	for _, page := range sizes {
		var times, speeds []profile.PairFigure
		for _, m := range p.Migration {
			if m.PageSize == page {
				times = append(times, profile.PairFigure{From: m.From, To: m.To, Figure: m.PerPage})
				speeds = append(speeds, profile.PairFigure{From: m.From, To: m.To, Figure: m.Rate})
			}
		}
		perPage, rate := newMatrix(p, times), newMatrix(p, speeds)
		perPage.between, rate.between = true, true
		r := ratesOf(pairFigures(speeds)...)
		s.Tables = append(s.Tables, perPage.table("µs a page of "+page.String(), micros, same), rate.table(r.unit+" in pages of "+page.String(), r.print, same))
		notes = append(notes, perPage.notes()...)
	}
	s.Notes = append(notes, s.Notes...)
	return s
}

func micros(ns float64) string { return render.Number(ns / 1000) }

// policySection is as numademo's table: policies by kinds of work.
func policySection(p profile.Profile) section {
	s := section{ID: "policies", Title: "What a memory policy costs", Notes: skips(p, profile.Policies),
		Sub: "As numademo shows; × is against the local policy: above 1 is better."}
	type who struct {
		policy string
		cpu    int
	}
	type cell struct {
		who
		work string
	}
	var rows []who
	var works []string
	heads, at := map[string]string{}, map[cell]profile.PolicyRow{}
	streams := slices.DeleteFunc(slices.Clone(p.Policies), func(r profile.PolicyRow) bool { return r.Unit != bytesPerSecond })
	speed := ratesOf(figuresOf(streams, func(r profile.PolicyRow) profile.Figure { return r.Figure })...)
	for _, r := range p.Policies {
		w := who{r.Policy, r.CPU}
		if !slices.Contains(rows, w) {
			rows = append(rows, w)
		}
		if !slices.Contains(works, r.Work) {
			works = append(works, r.Work)
			heads[r.Work] = render.Or(r.Work, unknown) + " " + speed.unitOf(r.Unit)
		}
		at[cell{w, r.Work}] = r
	}
	t := render.Grid{Heads: []string{"policy", "CPU"}, Keys: 2}
	for _, w := range works {
		t.Heads = append(t.Heads, heads[w], "×")
	}
	var u unknowns
	for _, w := range rows {
		row := []string{render.Or(w.policy, unknown), cpuName(w.cpu)}
		for _, work := range works {
			r, ok := at[cell{w, work}]
			if !ok {
				r.Why = "not measured"
			}
			row = append(row, show(r.Figure, speed.printerOf(r.Unit)), render.Show(r.Against, ratio))
			u.addFigure(r.Figure, fmt.Sprintf("%s (%s)", render.Or(w.policy, unknown), work))
		}
		t.AddText(row...)
	}
	return s.with(t, u)
}

func cpuName(cpu int) string {
	if cpu < 0 {
		return "all"
	}
	return strconv.Itoa(cpu)
}

const bytesPerSecond = "bytes/s"

// unitOf is the printed unit for one of the profile's.
func (r rates) unitOf(text string) string {
	if text == bytesPerSecond {
		return r.unit
	}
	return text
}

func (r rates) printerOf(text string) func(float64) string {
	if text == bytesPerSecond {
		return r.print
	}
	return render.Tenths
}
