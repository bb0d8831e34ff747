// SPDX-License-Identifier: Apache-2.0

package topology

import "homenode/internal/render"

// canvas is report's, with texts that are placed by their name.
type canvas struct{ render.Canvas }

func (c *canvas) text(x, y float64, class, text string)   { c.Text(x, y, class, "", text) }
func (c *canvas) right(x, y float64, class, text string)  { c.Text(x, y, class, "end", text) }
func (c *canvas) middle(x, y float64, class, text string) { c.Text(x, y, class, "middle", text) }
