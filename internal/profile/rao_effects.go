// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"homenode/internal/render"
	"homenode/internal/unit"
)

// RaoEffects is what decides the cost at one place of the grid: each is a factor of the
// cost.
type RaoEffects struct {
	// Sharing is inter / intra, divided by inter / intra without adds: the factor by
	// which adds to shared lines cost more across nodes. Without adds it is inter /
	// intra.
	Sharing float64
	// Locality is remote / local, intra, and Contention intra / inter, local: both
	// without adds.
	Locality, Contention float64
}

// effects are known if all five cells are there; without adds three are enough.
func (g raoGrid) effects(threads int, ws, sharing unit.Bytes) (RaoEffects, bool) {
	at := func(spread, memory string, sharing unit.Bytes) float64 {
		return g.cost[RaoKey{threads, spread, memory, ws, sharing}]
	}
	near, apart, far := at(Intra, Local, g.few), at(Inter, Local, g.few), at(Intra, Remote, g.few)
	together, across := at(Intra, Local, sharing), at(Inter, Local, sharing)
	if near == 0 || apart == 0 || far == 0 || together == 0 || across == 0 {
		return RaoEffects{}, false
	}
	e := RaoEffects{Sharing: across / together, Locality: far / near, Contention: near / apart}
	if sharing > g.few {
		e.Sharing /= apart / near
	}
	return e, true
}

// RaoFactor is one thing that decides the cost of a cell.
type RaoFactor struct {
	Name  string  // "locality", "LLC contention", "sharing"; without adds "spreading"
	Ratio float64 // the factor of the cost
}

// dominant has an empty name if no factor reaches RaoMatters. Among equals it is not
// sharing.
func (e RaoEffects) dominant(adds bool) RaoFactor {
	best := RaoFactor{Ratio: 1 + RaoMatters}
	name := "spreading"
	if adds {
		name = "sharing"
	}
	for _, f := range []RaoFactor{{"locality", e.Locality}, {"LLC contention", e.Contention}, {name, e.Sharing}} {
		if f.Ratio > best.Ratio {
			best = f
		}
	}
	return best
}

// RaoDominates names the factor that costs most at one place of the grid (number 4).
// Not ok when cells are missing; an empty name when no factor reaches RaoMatters.
func RaoDominates(cells []RaoCell, threads int, ws, sharing unit.Bytes) (RaoFactor, bool) {
	g := newRaoGrid(cells, 0)
	e, ok := g.effects(threads, ws, sharing)
	if !ok {
		return RaoFactor{}, false
	}
	return e.dominant(sharing > g.few), true
}

// sharing is number 4.
func (g raoGrid) sharing() RaoFinding {
	if g.llc <= 0 {
		return cannot(llcUnknown)
	}
	most, least := g.places(g.most), g.places(g.least)
	fits := slices.DeleteFunc(slices.Clone(most), func(p raoPlace) bool { return !g.fits(p.RaoKey) })
	switch {
	case g.most == g.few:
		return cannot("The grid has one sharing size only.")
	case len(fits) == 0:
		return cannot("No working sets that fit have cells of intra and inter with and without adds, and of remote memory.")
	}
	fit, all := dominated(fits), dominated(most)
	s, few := medianEffect(most), medianEffect(least)
	if !few.Known() {
		few = s
	}
	return RaoFinding{
		Verdict: verdictOf(float64(fit["sharing"]) >= RaoHalf*float64(len(fits)) && s.Or(0) >= few.Or(0)-RaoNoise),
		Evidence: fmt.Sprintf("At %v shared, sharing costs most in %d of %d places whose sets fit, and in %d of all %d (%s). Sharing multiplies inter / intra by %s, by %s at %v shared (medians). %s",
			g.most, fit["sharing"], len(fits), all["sharing"], len(most), spelled(all), render.Number(s.Or(0)), render.Number(few.Or(0)), g.least, effectsText(most)),
		Values: []RaoValue{{"sharing dominates, sets that fit", unit.Some(float64(fit["sharing"]))}, {"places that fit", unit.Some(float64(len(fits)))},
			{"sharing dominates, all", unit.Some(float64(all["sharing"]))}, {"places", unit.Some(float64(len(most)))},
			{"S, most shared", s}, {"S, least shared", few}},
	}
}

// raoPlace is a place of the grid with adds, and what decides its cost.
type raoPlace struct {
	RaoKey
	RaoEffects
}

// places are those of a sharing size for which everything is known.
func (g raoGrid) places(sharing unit.Bytes) []raoPlace {
	var out []raoPlace
	for _, k := range g.keys {
		if k.Spread != Inter || k.Memory != Local || k.Sharing != sharing || k.Threads < 2 {
			continue
		}
		if e, ok := g.effects(k.Threads, k.WS, sharing); ok {
			out = append(out, raoPlace{k, e})
		}
	}
	return out
}

func medianEffect(places []raoPlace) unit.Opt[float64] {
	var list []raoRatio
	for _, p := range places {
		list = append(list, raoRatio{p.RaoKey, p.RaoEffects.Sharing})
	}
	return medianOf(list)
}

// dominated counts places by their dominant factor.
func dominated(places []raoPlace) map[string]int {
	n := map[string]int{}
	for _, p := range places {
		n[p.dominant(true).Name]++
	}
	return n
}

func spelled(n map[string]int) string {
	parts := []string{}
	for _, name := range []string{"locality", "LLC contention", ""} {
		if n[name] > 0 {
			parts = append(parts, fmt.Sprintf("%s in %d", cmp.Or(name, "nothing"), n[name]))
		}
	}
	if len(parts) == 0 {
		return "nothing else does"
	}
	return "else: " + strings.Join(parts, ", ")
}

func effectsText(places []raoPlace) string {
	var parts []string
	for _, p := range places {
		parts = append(parts, fmt.Sprintf("%d × %v %s / %s / %s", p.Threads, p.WS, render.Number(p.RaoEffects.Sharing), render.Number(p.Locality), render.Number(p.Contention)))
	}
	return "Sharing / locality / contention: " + strings.Join(parts, ", ") + "."
}
