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
		*text = Printable(*text)
	}
	if c.Long != nil {
		long := clean(*c.Long)
		c.Long = &long
	}
	c.Order = each(c.Order, Printable)
	c.Arms = each(c.Arms, cleanArm)
	c.Targets = each(c.Targets, func(t trial.Target) trial.Target {
		t.Name, t.Want, t.Note = Printable(t.Name), Printable(t.Want), Printable(t.Note)
		return t
	})
	return c
}

func cleanArm(a trial.Arm) trial.Arm {
	a.Name, a.Title, a.Why = Printable(a.Name), Printable(a.Title), Printable(a.Why)
	if a.Title == "" {
		a.Title = a.Name
	}
	a.Why = strings.TrimPrefix(a.Why, "not applicable: ")
	a.Detail = each(a.Detail, Printable)
	a.Services = each(a.Services, func(s trial.Service) trial.Service {
		s.Name, s.Kind = Printable(s.Name), Printable(s.Kind)
		return s
	})
	return a
}

// Printable puts text on one line, and a mark where a control, a direction
// override or a broken byte was.
func Printable(text string) string {
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
