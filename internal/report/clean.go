// SPDX-License-Identifier: Apache-2.0

package report

import (
	"strings"
	"unicode"

	"homenode/internal/trial"
)

// clean returns c with every text fit to be shown: names come from files that
// others wrote, and a terminal obeys what it is sent. Markup is escaped by the
// face that knows its language.
func clean(c trial.Comparison) trial.Comparison {
	for _, text := range []*string{&c.Name, &c.Machine, &c.How, &c.Command, &c.Commit} {
		*text = printable(*text)
	}
	c.Order = each(c.Order, printable)
	c.Rejected = each(c.Rejected, printable)
	c.Arms = each(c.Arms, cleanArm)
	c.Targets = each(c.Targets, func(t trial.Target) trial.Target {
		t.Name, t.Want, t.Note = printable(t.Name), printable(t.Want), printable(t.Note)
		return t
	})
	return c
}

func cleanArm(a trial.Arm) trial.Arm {
	a.Name, a.Title, a.Why = printable(a.Name), printable(a.Title), printable(a.Why)
	if a.Title == "" {
		a.Title = a.Name
	}
	a.Why = strings.TrimPrefix(a.Why, "not applicable: ")
	a.Detail = each(a.Detail, printable)
	a.Services = each(a.Services, func(s trial.Service) trial.Service {
		s.Name, s.Kind = printable(s.Name), printable(s.Kind)
		return s
	})
	return a
}

// Printable is text fit for a terminal: on one line, and with a mark where a
// control, a direction override or a broken byte was.
func Printable(text string) string { return printable(text) }

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

func each[T any](list []T, f func(T) T) []T {
	out := make([]T, len(list))
	for i, v := range list {
		out[i] = f(v)
	}
	return out
}
