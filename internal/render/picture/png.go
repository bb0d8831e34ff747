// SPDX-License-Identifier: Apache-2.0

package picture

import (
	"fmt"
	"image"
	"image/color"
	"image/png"
	"io"
	"math"

	"golang.org/x/image/font"
	"golang.org/x/image/font/gofont/gobold"
	"golang.org/x/image/font/gofont/goregular"
	"golang.org/x/image/font/opentype"
	"golang.org/x/image/math/fixed"
	"golang.org/x/image/vector"
)

// maxPixels bounds a picture's memory: 4 bytes each. A page of 1200 × 10000 at two pixels
// to a CSS pixel fits.
const maxPixels = 48 << 20

// PNG writes a drawing with two pixels to a CSS pixel, or one where that is too many.
func PNG(w io.Writer, svg []byte) error {
	var p *pngPen
	err := draw(svg, func(w, h float64) (pen, error) {
		fresh, err := newPNGPen(w, h)
		p = fresh
		return fresh, err
	})
	if err == nil {
		err = png.Encode(w, p.image)
	}
	if err != nil {
		return fmt.Errorf("write PNG: %w", err)
	}
	return nil
}

// pngPen draws pixels.
type pngPen struct {
	image *image.RGBA
	scale float64
	fonts [2]*opentype.Font // regular, bold
	faces map[faceKey]font.Face
	shape vector.Rasterizer
}

type faceKey struct {
	size float64
	bold bool
}

func newPNGPen(w, h float64) (*pngPen, error) {
	scale := 2.0
	if w*h*scale*scale > maxPixels {
		scale = 1
	}
	if w*h > maxPixels {
		return nil, fmt.Errorf("%.0f × %.0f are more than %d pixels: SVG and PDF have no such limit", w, h, maxPixels)
	}
	p := &pngPen{image: image.NewRGBA(image.Rect(0, 0, int(math.Ceil(w*scale)), int(math.Ceil(h*scale)))), scale: scale, faces: map[faceKey]font.Face{}}
	for i, ttf := range [][]byte{goregular.TTF, gobold.TTF} {
		f, err := opentype.Parse(ttf)
		if err != nil {
			return nil, err
		}
		p.fonts[i] = f
	}
	return p, nil
}

// point is in pixels of the image.
type point struct{ x, y float64 }

// fill paints closed outlines: a second one that runs the other way is a hole.
func (p *pngPen) fill(c color.NRGBA, outlines ...[]point) {
	if len(outlines[0]) == 0 {
		return
	}
	low, high := point{math.Inf(1), math.Inf(1)}, point{math.Inf(-1), math.Inf(-1)}
	for _, q := range outlines[0] {
		low.x, low.y, high.x, high.y = min(low.x, q.x), min(low.y, q.y), max(high.x, q.x), max(high.y, q.y)
	}
	x, y := int(math.Floor(low.x)), int(math.Floor(low.y))
	w, h := int(math.Ceil(high.x))-x, int(math.Ceil(high.y))-y
	if c.A == 0 || w <= 0 || h <= 0 || w*h > maxPixels {
		return
	}
	p.shape.Reset(w, h)
	for _, outline := range outlines {
		for i, q := range outline {
			at := [2]float32{float32(q.x - float64(x)), float32(q.y - float64(y))}
			if i == 0 {
				p.shape.MoveTo(at[0], at[1])
			} else {
				p.shape.LineTo(at[0], at[1])
			}
		}
		p.shape.ClosePath()
	}
	p.shape.Draw(p.image, image.Rect(x, y, x+w, y+h), image.NewUniform(c), image.Point{})
}

// rounded is a rectangle's outline, grown by so much on each side.
func (p *pngPen) rounded(x, y, w, h, round, grow float64) []point {
	k := p.scale
	x, y, w, h = (x-grow)*k, (y-grow)*k, (w+2*grow)*k, (h+2*grow)*k
	if w <= 0 || h <= 0 {
		return nil
	}
	r := 0.0
	if round > 0 {
		r = min(max(0, round+grow)*k, w/2, h/2)
	}
	var out []point
	const steps = 6
	for corner, c := range []point{{x + w - r, y + r}, {x + w - r, y + h - r}, {x + r, y + h - r}, {x + r, y + r}} {
		for i := range steps + 1 {
			angle := (float64(corner) - 1 + float64(i)/steps) * math.Pi / 2
			out = append(out, point{c.x + r*math.Cos(angle), c.y + r*math.Sin(angle)})
			if r == 0 {
				break
			}
		}
	}
	return out
}

func backwards(outline []point) []point {
	out := make([]point, len(outline))
	for i, q := range outline {
		out[len(out)-1-i] = q
	}
	return out
}

func (p *pngPen) rect(x, y, w, h, round float64, s style) {
	if inside := p.rounded(x, y, w, h, round, 0); inside != nil {
		if s.hatch {
			s.fill = hatchColour
		}
		p.fill(s.fill, inside)
	}
	switch {
	case s.stroke.A == 0:
	case len(s.dash) > 0:
		for _, side := range [][4]float64{{x, y, x + w, y}, {x + w, y, x + w, y + h}, {x + w, y + h, x, y + h}, {x, y + h, x, y}} {
			p.line(side[0], side[1], side[2], side[3], s)
		}
	default:
		p.ring(s, p.rounded(x, y, w, h, round, s.width/2), p.rounded(x, y, w, h, round, -s.width/2))
	}
}

func (p *pngPen) ring(s style, outer, inner []point) {
	if inner == nil {
		p.fill(s.stroke, outer)
		return
	}
	p.fill(s.stroke, outer, backwards(inner))
}

func (p *pngPen) line(x1, y1, x2, y2 float64, s style) {
	length := math.Hypot(x2-x1, y2-y1)
	if s.stroke.A == 0 || length == 0 {
		return
	}
	dx, dy := (x2-x1)/length, (y2-y1)/length
	part := func(from, to float64) {
		ax, ay, bx, by := x1+dx*from, y1+dy*from, x1+dx*to, y1+dy*to
		nx, ny := -dy*s.width/2, dx*s.width/2
		k := p.scale
		p.fill(s.stroke, []point{{(ax + nx) * k, (ay + ny) * k}, {(bx + nx) * k, (by + ny) * k}, {(bx - nx) * k, (by - ny) * k}, {(ax - nx) * k, (ay - ny) * k}})
	}
	if len(s.dash) < 2 || s.dash[0]+s.dash[1] < 0.5 {
		part(0, length)
		return
	}
	for at := 0.0; at < length; at += s.dash[0] + s.dash[1] {
		part(at, min(length, at+s.dash[0]))
	}
}

func (p *pngPen) circle(x, y, r float64, s style) {
	p.fill(s.fill, p.rounded(x-r, y-r, 2*r, 2*r, r, 0))
	if s.stroke.A > 0 {
		p.ring(s, p.rounded(x-r, y-r, 2*r, 2*r, r, s.width/2), p.rounded(x-r, y-r, 2*r, 2*r, r, -s.width/2))
	}
}

func (p *pngPen) text(x, y float64, anchor string, s style, text string) {
	face, err := p.face(s.size, s.bold)
	if err != nil {
		return // the font is part of the program: its test would fail
	}
	text = plain(text)
	d := font.Drawer{Dst: p.image, Src: image.NewUniform(s.fill), Face: face}
	wide := float64(d.MeasureString(text)) / 64
	d.Dot = fixed.Point26_6{X: fixed.Int26_6((x*p.scale - shift(anchor)*wide) * 64), Y: fixed.Int26_6(y * p.scale * 64)}
	d.DrawString(text)
}

func (p *pngPen) face(size float64, bold bool) (font.Face, error) {
	key := faceKey{size, bold}
	if p.faces[key] != nil {
		return p.faces[key], nil
	}
	f := p.fonts[0]
	if bold {
		f = p.fonts[1]
	}
	face, err := opentype.NewFace(f, &opentype.FaceOptions{Size: size * p.scale, DPI: 72, Hinting: font.HintingNone})
	if err == nil {
		p.faces[key] = face
	}
	return face, err
}
