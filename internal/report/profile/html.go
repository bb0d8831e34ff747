// SPDX-License-Identifier: Apache-2.0

package profile

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"slices"

	"homenode/internal/profile"
	"homenode/internal/render"
)

// page.tmpl is well-formed XML too: the test reads it as such.
//
//go:embed page.tmpl
var pageText string

var document = render.NewPage(pageText, render.PictureStyle, template.FuncMap{
	"verdictClass": verdictClass,
	"short": func(all []render.Grid) []render.Grid {
		return slices.DeleteFunc(slices.Clone(all), func(t render.Grid) bool { return t.Long })
	},
	"long": func(all []render.Grid) []render.Grid {
		return slices.DeleteFunc(slices.Clone(all), func(t render.Grid) bool { return !t.Long })
	},
})

func verdictClass(v profile.Verdict) string {
	switch v {
	case profile.Confirmed:
		return "good"
	case profile.NotConfirmed:
		return "bad"
	}
	return ""
}

// HTML writes one self-contained page: no scripts, nothing fetched.
func HTML(w io.Writer, p profile.Profile) error {
	v := newView(p)
	data := struct {
		Headline, How, Clock string
		Badges, Facts        []render.Fact
		Caveats              []string
		Sections             []section
	}{v.headline, render.How(v.How), render.Or(v.Clock, "clock unknown"), nil, v.facts, caveats(v.Profile), v.sections}
	for _, f := range v.facts {
		if slices.Contains([]string{"clock", "date", "took", "machine"}, f.Name) {
			data.Badges = append(data.Badges, f)
		}
	}
	if err := document().Execute(w, data); err != nil {
		return fmt.Errorf("write page: %w", err)
	}
	return nil
}
