// SPDX-License-Identifier: Apache-2.0

package render

import (
	_ "embed"
	"html/template"
	"sync"
)

// shell.tmpl is well-formed XML too, as every page is.
//
//go:embed shell.tmpl
var shell string

//go:embed style.css
var style string

//go:embed figures.css
var figures string

// NewPage makes a page of a text that defines title, style, main and footer. pictures is the
// style of what is drawn on it; a page without has the plain look. The page is parsed when
// it is wanted: every command would pay for it at its start.
func NewPage(text, pictures string, funcs template.FuncMap) func() *template.Template {
	look := style
	if pictures != "" {
		look += pictures + figures
	}
	return sync.OnceValue(func() *template.Template {
		t := template.New("page").Funcs(template.FuncMap{"look": func() template.CSS { return template.CSS(look) }}).Funcs(funcs)
		return template.Must(template.Must(t.Parse(shell)).Parse(text))
	})
}
