// SPDX-License-Identifier: Apache-2.0

package render

import (
	"reflect"
	"slices"
	"strings"
	"unicode"

	"homenode/internal/unit"
)

// Count says "1 node", "3 nodes", "1,234 processes", "2 policies".
func Count(n int, what string) string { return Integer(n) + " " + Plural(n, what) }

// Integer prints a count: 8, 1,234.
func Integer[T ~int | ~int64 | ~uint64](n T) string { return Commas(float64(n)) }

// Plural is the word for so many.
func Plural(n int, what string) string {
	switch {
	case n == 1:
		return what
	case strings.HasSuffix(what, "s"), strings.HasSuffix(what, "x"):
		return what + "es"
	case strings.HasSuffix(what, "y"):
		return strings.TrimSuffix(what, "y") + "ies"
	}
	return what + "s"
}

// List says "a", "a and b", "a, b and c".
func List(items []string) string {
	if len(items) < 2 {
		return strings.Join(items, "")
	}
	last := len(items) - 1
	return strings.Join(items[:last], ", ") + " and " + items[last]
}

// ListFew says "a, b and 3 more" of more than most items.
func ListFew(items []string, most int) string {
	if n := len(items); n > most {
		items = append(slices.Clone(items[:most]), Commas(float64(n-most))+" more")
	}
	return List(items)
}

// Or is text, or other where there is none.
func Or(text, other string) string {
	if text == "" {
		return other
	}
	return text
}

// OrUnknown is text, or that it is unknown.
func OrUnknown(text string) string { return Or(text, Unknown) }

// YesNo is the answer to a question, or that it is unknown.
func YesNo(o unit.Opt[bool]) string {
	return Show(o, func(yes bool) string {
		if yes {
			return "yes"
		}
		return "no"
	})
}

// How says how figures are known. It is never left out: a modelled figure is not
// shown as a measured one.
func How(s unit.Source) string {
	if s == unit.HowModelled {
		return "modelled (lab)"
	}
	return s.String()
}

// Source is how a figure is known and from what: "measured, meminfo".
func Source(how unit.Source, from string) string {
	if from == "" {
		return how.String()
	}
	return how.String() + ", " + from
}

// Mark is Source in one character where most figures are measured; MarkLegend says so.
func Mark(how unit.Source) string {
	switch how {
	case unit.HowEstimated:
		return "~"
	case unit.HowModelled:
		return "^"
	}
	return ""
}

// MarkLegend explains Mark.
const MarkLegend = "~ is estimated, ^ modelled; the others are measured."

// Printable puts text on one line, and a mark where a control, a direction override or
// a broken byte was: names come from files that others wrote, and a terminal obeys what
// it is sent.
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

// Name is a name from outside, fit to print; "-" where there is none.
func Name(text string) string { return Or(Printable(text), "-") }

// Each calls f for each element and returns the results.
func Each[T, U any](list []T, f func(T) U) []U {
	out := make([]U, len(list))
	for i, v := range list {
		out[i] = f(v)
	}
	return out
}

// Cleaned returns v with every text made Printable. It works by reflection, so that no
// field is forgotten; it does not reach what sets and options hold inside.
func Cleaned[T any](v T) T {
	cleanValue(reflect.ValueOf(&v).Elem())
	return v
}

// cleanValue cleans in place; slices and what is pointed to are copied first, they are
// the caller's.
func cleanValue(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(Printable(v.String()))
	case reflect.Pointer:
		if v.IsNil() {
			return
		}
		fresh := reflect.New(v.Type().Elem())
		fresh.Elem().Set(v.Elem())
		cleanValue(fresh.Elem())
		v.Set(fresh)
	case reflect.Slice:
		fresh := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
		reflect.Copy(fresh, v)
		for i := range fresh.Len() {
			cleanValue(fresh.Index(i))
		}
		v.Set(fresh)
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Field(i).CanSet() {
				cleanValue(v.Field(i))
			}
		}
	}
}
