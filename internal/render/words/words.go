// SPDX-License-Identifier: Apache-2.0

package words

import (
	"fmt"
	"strings"

	"homenode/internal/action"
	"homenode/internal/render"
)

// Has says that a rule has a sentence.
func Has(rule string) bool { return sentences[rule] != "" }

// Sentence is a reason in words: which condition decided, and with which figures. A cause
// that the rule's own sentence does not name comes after it.
func Sentence(r action.Reason) string {
	template, ok := sentences[r.Rule]
	if !ok {
		template = r.Rule // of a newer homenode, or a test
	}
	text := fill(template, r)
	if r.Cause != nil && !strings.Contains(template, "{cause}") {
		text += "; " + Sentence(*r.Cause)
	}
	return text
}

// Full is a reason in one line, for a log: rule, sentence, then the figures with their
// limits and how each is known.
func Full(r action.Reason) string {
	parts := make([]string, len(r.Numbers))
	for i, n := range r.Numbers {
		parts[i] = Number(n)
	}
	if len(parts) == 0 {
		return r.Rule + ": " + Sentence(r)
	}
	return fmt.Sprintf("%s: %s [%s]", r.Rule, Sentence(r), strings.Join(parts, "; "))
}

// Number is "local_access_ratio 57% (measured, limit 90%)".
func Number(n action.Number) string {
	v, known := n.Value.Get()
	l, limited := n.Limit.Get()
	say := evidence
	if known && limited && v != l && evidence(v, n.Unit) == evidence(l, n.Unit) {
		say = exactly
	}
	limit := ""
	if limited {
		limit = ", limit " + say(l, n.Unit)
	}
	if !known {
		return fmt.Sprintf("%s unknown (%s%s)", n.Name, n.Value.From, limit)
	}
	return n.Name + " " + say(v, n.Unit) + fmt.Sprintf(" (%v%s)", n.Value.How, limit)
}

// Alternative is "nodes 1 *: fits: cost 0.250, …" or "nodes 0: cpu: it needs 1.60 CPUs,
// 0.40 are left"; the chosen one has a star.
func Alternative(a action.Alternative) string {
	code, star := a.Code, ""
	if code == "" {
		code = "fits"
	}
	if a.Chosen {
		star = " *"
	}
	what := "nodes " + a.Nodes.String()
	if a.Name != "" {
		what = a.Name
	}
	text := fmt.Sprintf("%s%s: %s", what, star, code)
	if figures := Figures(a); figures != "" {
		text += ": " + figures
	}
	return text
}

// Figures are how an alternative fits, or by how much it does not.
func Figures(a action.Alternative) string {
	parts := []string{}
	if text := codes[a.Code]; text != "" {
		parts = append(parts, text)
	}
	for _, f := range a.Figures {
		say, ok := phrases[f.Name]
		if !ok {
			say = func(v float64) string { return f.Name + " " + render.Precise(v) }
		}
		parts = append(parts, say(f.Value))
	}
	return strings.Join(parts, ", ")
}

// Outcome is what became of a step: "set-cpus /a 2-3: refused: its cgroup may use the
// memory of nodes 0 only; the binding stays as it is".
func Outcome(o action.Outcome) string {
	text := fmt.Sprintf("%v: %s", o.Step, o.Status)
	if why := Became(o); why != "" {
		text += ": " + why
	}
	return text
}

// Became is why an outcome is what it is; "" if nothing is said of it.
func Became(o action.Outcome) string {
	parts := []string{}
	if o.Why.Rule != "" {
		parts = append(parts, Sentence(o.Why))
	}
	if o.Detail != "" {
		parts = append(parts, o.Detail)
	}
	if o.Stays {
		parts = append(parts, "the binding stays as it is")
	}
	return strings.Join(parts, "; ")
}
