// SPDX-License-Identifier: Apache-2.0

package picture

import (
	"fmt"
	"image/color"
	"slices"
	"strconv"
	"strings"
)

// style is how an element looks. Lengths are CSS pixels.
type style struct {
	fill, stroke color.NRGBA // alpha 0: none
	hatch        bool        // the fill is a pattern
	width        float64     // of the stroke
	dash         []float64
	size         float64 // of a font
	bold         bool
}

// rule is "text{…}", ".name{…}" or ".core.off{…}".
type rule struct {
	element string
	classes []string
	set     []declaration
}

type declaration struct{ property, value string }

// parseSheet reads the rules of a style sheet in their order. Media queries, which are for
// the screen, are skipped.
func parseSheet(text string) ([]rule, error) {
	var rules []rule
	for text = strings.TrimSpace(text); text != ""; text = strings.TrimSpace(text) {
		selectors, rest, ok := strings.Cut(text, "{")
		body, after, closed := strings.Cut(rest, "}")
		if !ok || !closed || strings.HasPrefix(selectors, "@") {
			return nil, fmt.Errorf("style sheet: %.40q is no rule", text)
		}
		text = after
		set, err := parseDeclarations(body)
		if err != nil {
			return nil, err
		}
		for selector := range strings.SplitSeq(selectors, ",") {
			parts := strings.Split(strings.TrimSpace(selector), ".")
			rules = append(rules, rule{element: parts[0], classes: parts[1:], set: set})
		}
	}
	return rules, nil
}

func parseDeclarations(body string) ([]declaration, error) {
	var set []declaration
	for part := range strings.SplitSeq(body, ";") {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		property, value, ok := strings.Cut(part, ":")
		if !ok {
			return nil, fmt.Errorf("style sheet: %.40q is no declaration", part)
		}
		set = append(set, declaration{strings.TrimSpace(property), strings.TrimSpace(value)})
	}
	return set, nil
}

// matches: a selector's element and classes are the element's.
func (r rule) matches(element string, classes []string) bool {
	if r.element != "" && r.element != element {
		return false
	}
	return !slices.ContainsFunc(r.classes, func(c string) bool { return !slices.Contains(classes, c) })
}

// styleOf applies the rules that match; more classes win over fewer, later over earlier.
func styleOf(rules []rule, element string, classes []string) (style, error) {
	s := style{fill: color.NRGBA{A: 255}, width: 1, size: 12}
	if element == "line" {
		s.fill = color.NRGBA{}
	}
	for weight := range 4 {
		for _, r := range rules {
			if len(r.classes) != weight || !r.matches(element, classes) {
				continue
			}
			for _, d := range r.set {
				if err := s.apply(d); err != nil {
					return style{}, err
				}
			}
		}
	}
	return s, nil
}

func (s *style) apply(d declaration) (err error) {
	switch d.property {
	case "fill":
		s.hatch = strings.HasPrefix(d.value, "url(")
		if !s.hatch {
			s.fill, err = parseColour(d.value)
		}
	case "stroke":
		s.stroke, err = parseColour(d.value)
	case "stroke-width":
		s.width, err = parseLength(d.value)
	case "stroke-dasharray":
		for field := range strings.FieldsSeq(d.value) {
			v, wrong := parseLength(field)
			if wrong != nil {
				return wrong
			}
			s.dash = append(s.dash, v)
		}
	case "font-size":
		s.size, err = parseLength(d.value)
	case "font-weight":
		s.bold = d.value == "bold" || d.value >= "600"
	case "font": // "12px system-ui,…"
		first, _, _ := strings.Cut(d.value, " ")
		s.size, err = parseLength(first)
	default:
		err = fmt.Errorf("style sheet: unknown property %.40q", d.property)
	}
	return err
}

func parseLength(text string) (float64, error) {
	v, err := strconv.ParseFloat(strings.TrimSuffix(text, "px"), 64)
	if err != nil || !(v >= 0 && v < 1e6) {
		return 0, fmt.Errorf("length %.40q: want a number up to 1000000", text)
	}
	return v, nil
}

// parseColour reads "#fff", "#56616c" and "none".
func parseColour(text string) (color.NRGBA, error) {
	if text == "none" {
		return color.NRGBA{}, nil
	}
	digits, ok := strings.CutPrefix(text, "#")
	if len(digits) == 3 {
		digits = string([]byte{digits[0], digits[0], digits[1], digits[1], digits[2], digits[2]})
	}
	n, err := strconv.ParseUint(digits, 16, 24)
	if !ok || err != nil || len(digits) != 6 {
		return color.NRGBA{}, fmt.Errorf("colour %.40q: want #rrggbb or none", text)
	}
	return color.NRGBA{uint8(n >> 16), uint8(n >> 8), uint8(n), 255}, nil
}
