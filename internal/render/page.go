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

// Style is what a page looks like. A page that a server sends links to it: then a policy of
// what a page may run can name it.
func Style(pictures string) string {
	if pictures == "" {
		return style
	}
	return style + pictures + figures
}

// NewPage makes a page of a text that defines title, style, main and footer. pictures is the
// style of what is drawn on it; a page without has the plain look. The text may also define
// look, before, content and fetches of the shell: a page with a server. The page is parsed when
// it is wanted: every command would pay for it at its start.
func NewPage(text, pictures string, funcs template.FuncMap) func() *template.Template {
	look := Style(pictures)
	return sync.OnceValue(func() *template.Template {
		t := template.New("page").Funcs(template.FuncMap{"look": func() template.CSS { return template.CSS(look) }}).Funcs(funcs)
		return template.Must(template.Must(t.Parse(shell)).Parse(text))
	})
}
