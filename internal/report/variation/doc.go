// SPDX-License-Identifier: Apache-2.0

// Package variation shows how a command's run time varies, unpinned and placed: as text
// for a terminal and as Markdown.
//
//	trial.Variation ──▶ page: headings, two tables, sentences ──▶ Text, Markdown
//
// A difference within the noise is called noise, and a modelled figure modelled. It is
// NOT for: comparing (experiment), or JSON, which is the Variation itself.
package variation
