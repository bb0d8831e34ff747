// SPDX-License-Identifier: Apache-2.0

package findings

import (
	"homenode/internal/action"
	"homenode/internal/doctor"
	"homenode/internal/report"
	"homenode/internal/unit"
)

// clean returns r with every text on one line and fit to be shown; the slices are
// copies.
func clean(r doctor.Report) doctor.Report {
	v := &r.Verdict
	v.Why, v.Missing = report.Printable(v.Why), report.Printable(v.Missing)
	v.Numbers = each(v.Numbers, func(n action.Number) action.Number {
		n.Name, n.Unit, n.Value.From = report.Printable(n.Name), report.Printable(n.Unit), report.Printable(n.Value.From)
		return n
	})
	r.Origin = report.Printable(r.Origin)
	r.Findings = each(r.Findings, cleanFinding)
	r.Quiet, r.Problems = each(r.Quiet, report.Printable), each(r.Problems, report.Printable)
	r.Skipped = each(r.Skipped, func(s doctor.Skipped) doctor.Skipped {
		s.Rule, s.Why, s.Subjects = report.Printable(s.Rule), report.Printable(s.Why), each(s.Subjects, report.Printable)
		return s
	})
	return r
}

func cleanFinding(f doctor.Finding) doctor.Finding {
	for _, text := range []*string{&f.Rule, &f.Title, &f.Risk, &f.Cause, &f.Remedy, &f.Cost.From} {
		*text = report.Printable(*text)
	}
	f.Evidence = each(f.Evidence, func(e doctor.Evidence) doctor.Evidence {
		e.Name, e.Value, e.From = report.Printable(e.Name), report.Printable(e.Value), report.Printable(e.From)
		return e
	})
	f.Commands = each(f.Commands, report.Printable)
	return f
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
