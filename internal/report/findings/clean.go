// SPDX-License-Identifier: Apache-2.0

package findings

import (
	"strings"
	"unicode"

	"homenode/internal/action"
	"homenode/internal/doctor"
	"homenode/internal/unit"
)

// clean returns r with every text on one line and fit to be shown; the slices are
// copies.
func clean(r doctor.Report) doctor.Report {
	v := &r.Verdict
	v.Why, v.Missing = printable(v.Why), printable(v.Missing)
	v.Numbers = each(v.Numbers, func(n action.Number) action.Number {
		n.Name, n.Unit, n.Value.From = printable(n.Name), printable(n.Unit), printable(n.Value.From)
		return n
	})
	r.Origin = printable(r.Origin)
	r.Findings = each(r.Findings, cleanFinding)
	r.Quiet = each(r.Quiet, printable)
	r.Skipped = each(r.Skipped, func(s doctor.Skipped) doctor.Skipped {
		s.Rule, s.Why, s.Subjects = printable(s.Rule), printable(s.Why), each(s.Subjects, printable)
		return s
	})
	return r
}

func cleanFinding(f doctor.Finding) doctor.Finding {
	for _, text := range []*string{&f.Rule, &f.Title, &f.Risk, &f.Cause, &f.Remedy, &f.Cost.From} {
		*text = printable(*text)
	}
	f.Evidence = each(f.Evidence, func(e doctor.Evidence) doctor.Evidence {
		e.Name, e.Value, e.From = printable(e.Name), printable(e.Value), printable(e.From)
		return e
	})
	f.Commands = each(f.Commands, printable)
	return f
}

// printable puts text on one line, and a mark where a control, a direction
// override or a broken byte was.
func printable(text string) string {
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case !unicode.IsPrint(r):
			return '\uFFFD'
		}
		return r
	}, text))
}

func each[T, U any](list []T, f func(T) U) []U {
	out := make([]U, len(list))
	for i, v := range list {
		out[i] = f(v)
	}
	return out
}

// source says how a figure is known: "measured, meminfo"; "" when nothing is said.
func source(how unit.Source, from string) string {
	if from == "" {
		return how.String()
	}
	return how.String() + ", " + from
}
