// SPDX-License-Identifier: Apache-2.0

package words

import (
	"strings"

	"homenode/internal/action"
	"homenode/internal/render"
)

// A template is text with figures of a reason in braces:
//
//	{name}          the figure of that name, in its unit; "unknown" if it is not known
//	{name.limit}    its limit
//	{name|verb}     a form of it, how it is known, or only a condition: see below
//	{nodes} {other} {detail} {cause}   the reason's own
//	[…]             left out when a figure in it is missing or unknown, or a condition fails
//
// Clauses in brackets do not nest.

// fill makes the sentence of a reason.
func fill(template string, r action.Reason) string {
	var out strings.Builder
	for template != "" {
		before, rest, found := strings.Cut(template, "[")
		text, _ := figures(before, r)
		out.WriteString(text)
		if !found {
			break
		}
		clause, after, _ := strings.Cut(rest, "]")
		if text, complete := figures(clause, r); complete {
			out.WriteString(text)
		}
		template = after
	}
	return out.String()
}

// figures fills in the braces; complete is false if anything is missing.
func figures(text string, r action.Reason) (filled string, complete bool) {
	var out strings.Builder
	complete = true
	for {
		before, rest, found := strings.Cut(text, "{")
		out.WriteString(before)
		if !found {
			return out.String(), complete
		}
		var name string
		name, text, _ = strings.Cut(rest, "}")
		figure, ok := one(name, r)
		out.WriteString(figure)
		complete = complete && ok
	}
}

// one is what stands for a pair of braces. What the reason lacks stays in braces, for a
// test to find.
func one(name string, r action.Reason) (text string, ok bool) {
	missing := "{" + name + "}"
	switch name {
	case "nodes":
		return orElse(r.Nodes.String(), missing)
	case "other":
		return orElse(r.Other, missing)
	case "detail":
		return orElse(r.Detail, missing)
	case "no other":
		return "", r.Other == ""
	case "no detail":
		return "", r.Detail == ""
	case "cause":
		if r.Cause == nil {
			return missing, false
		}
		return Sentence(*r.Cause), true
	}
	name, verb, _ := strings.Cut(name, "|")
	name, limit := strings.CutSuffix(name, ".limit")
	n, there := r.Number(name)
	if !there {
		return missing, false
	}
	if condition := conditions[verb]; condition != nil {
		return "", condition(n)
	}
	if about := abouts[verb]; about != nil {
		return about(n), true
	}
	v, known := n.Value.Get()
	if limit {
		v, known = n.Limit.Get()
	}
	switch form := forms[verb]; {
	case !known:
		return "unknown", false
	case form != nil:
		return form(v), true
	}
	return inUnit(v, n.Unit), true
}

func orElse(text, missing string) (string, bool) {
	if text == "" {
		return missing, false
	}
	return text, true
}

// conditions are what a clause may ask for; they print nothing.
var conditions = map[string]func(action.Number) bool{
	"known":     func(n action.Number) bool { return n.Value.Known() },
	"unknown":   func(n action.Number) bool { return !n.Value.Known() },
	"decides":   func(n action.Number) bool { return n.Decides },
	"unlimited": func(n action.Number) bool { return !n.Limit.Known() },
	"none":      func(n action.Number) bool { return !(n.Value.Or(0) > 0) },
	"some":      func(n action.Number) bool { return n.Value.Or(0) > 0 },
	"once":      func(n action.Number) bool { return n.Value.Or(0) == 1 },
	"many":      func(n action.Number) bool { return n.Value.Or(0) > 1 },
	"under":     func(n action.Number) bool { return n.Value.Known() && n.Value.Or(0) < n.Limit.Or(0) },
	"over":      func(n action.Number) bool { return n.Value.Known() && n.Value.Or(0) >= n.Limit.Or(0) },
}

// abouts say how a figure is known: of an unknown one, why it is.
var abouts = map[string]func(action.Number) string{
	"estimated": estimated,
	"from":      func(n action.Number) string { return n.Value.From },
	"how":       func(n action.Number) string { return n.Value.How.String() },
}

// forms are other ways to print a known figure.
var forms = map[string]func(float64) string{
	"percent": render.Percent,
	"points":  func(v float64) string { return render.Commas(v * 100) }, // of a difference of two ratios
	"worse":   func(v float64) string { return render.Percent(v - 1) },  // of how many times it is
	"short":   render.Amount,
	"ns":      func(v float64) string { return render.Amount(v * 1e9) },
}
