// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"io"
	"strings"

	"homenode/internal/profile"
	"homenode/internal/render"
)

// Text prints a profile for a terminal.
func Text(w io.Writer, p profile.Profile, o render.TextOptions) error {
	v, out := newView(p), &printer{o.Terminal()}
	out.Wrapped("", v.headline)
	for _, f := range v.facts {
		out.Wrapped("  ", f.Name+": "+f.Text)
	}
	for i, c := range caveats(v.Profile) {
		if i == 0 {
			out.Line("")
		}
		out.Wrapped("", "Caution: "+c)
	}
	for _, s := range v.sections {
		out.section(s)
	}
	return out.Flush(w, "profile")
}

// printer prints a profile.
type printer struct{ render.Terminal }

func (p *printer) section(s section) {
	p.Line("")
	p.Wrapped("", strings.ToUpper(s.Title))
	p.Wrapped("", s.Sub)
	for i, t := range s.Tables {
		if t.Long {
			continue
		}
		if i > 0 {
			p.Line("")
		}
		if t.Caption != "" {
			p.Wrapped("  ", t.Caption)
		}
		p.Table(t.Table(keyWidth, cellWidth))
	}
	for _, n := range s.Notes {
		p.Wrapped("  ", n)
	}
	if len(s.Findings) > 0 {
		p.Line("")
		p.Wrapped("  ", "What Rao's slides say of it, and what these figures say")
	}
	for _, f := range s.Findings {
		p.Wrapped("  ", strings.ToUpper(string(f.Verdict))+": "+f.Statement)
		p.Wrapped("      ", f.Evidence)
	}
}

// keyWidth and cellWidth are the columns for a long name, such as a policy's: two keys
// and a cell fit the narrowest terminal.
const (
	keyWidth  = 28
	cellWidth = 21
)
