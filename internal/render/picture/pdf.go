// SPDX-License-Identifier: Apache-2.0

package picture

import (
	"fmt"
	"image/color"
	"io"
	"time"

	"codeberg.org/go-pdf/fpdf"
	"golang.org/x/image/font/gofont/gobold"
	"golang.org/x/image/font/gofont/goregular"
)

// maxPage is the largest side of a PDF's page, in points (ISO 32000-1, Annex C).
const maxPage = 14400.0

// PDF writes a drawing as one page of its own size.
func PDF(w io.Writer, svg []byte) error {
	var p *pdfPen
	err := draw(svg, func(w, h float64) (pen, error) {
		p = newPDFPen(w, h)
		return p, p.f.Error()
	})
	if err != nil {
		return fmt.Errorf("write PDF: %w", err)
	}
	if err := p.f.Output(w); err != nil {
		return fmt.Errorf("write PDF: %w", err)
	}
	return nil
}

// pdfPen draws on a page of points; scale makes points of pixels.
type pdfPen struct {
	f     *fpdf.Fpdf
	scale float64
}

func newPDFPen(w, h float64) *pdfPen {
	scale := min(0.75, maxPage/max(w, h)) // a CSS pixel is 0.75 points
	f := fpdf.NewCustom(&fpdf.InitType{UnitStr: "pt", Size: fpdf.SizeType{Wd: w * scale, Ht: h * scale}})
	f.SetCreationDate(time.Unix(0, 0).UTC()) // the same drawing is the same file
	f.SetModificationDate(time.Unix(0, 0).UTC())
	f.SetCatalogSort(true)
	f.SetMargins(0, 0, 0)
	f.SetAutoPageBreak(false, 0)
	f.AddUTF8FontFromBytes("go", "", goregular.TTF)
	f.AddUTF8FontFromBytes("go", "B", gobold.TTF)
	f.AddPage()
	return &pdfPen{f, scale}
}

// use sets the style's colours, and returns what fpdf calls it: fill, draw or both.
func (p *pdfPen) use(s style) string {
	how := ""
	fill := s.fill
	if s.hatch {
		fill = hatchColour
	}
	if fill.A > 0 {
		p.f.SetFillColor(int(fill.R), int(fill.G), int(fill.B))
		how += "F"
	}
	if s.stroke.A > 0 {
		p.f.SetDrawColor(int(s.stroke.R), int(s.stroke.G), int(s.stroke.B))
		p.f.SetLineWidth(s.width * p.scale)
		var dash []float64
		for _, d := range s.dash {
			dash = append(dash, d*p.scale)
		}
		p.f.SetDashPattern(dash, 0)
		how += "D"
	}
	return how
}

// hatchColour stands for a pattern's lines and ground.
var hatchColour = color.NRGBA{0xe6, 0xe9, 0xec, 255}

func (p *pdfPen) rect(x, y, w, h, round float64, s style) {
	how := p.use(s)
	switch k := p.scale; {
	case how == "":
	case round > 0:
		p.f.RoundedRect(x*k, y*k, w*k, h*k, min(round, w/2, h/2)*k, "1234", how)
	default:
		p.f.Rect(x*k, y*k, w*k, h*k, how)
	}
}

func (p *pdfPen) line(x1, y1, x2, y2 float64, s style) {
	if p.use(style{stroke: s.stroke, width: s.width, dash: s.dash}) != "" {
		p.f.Line(x1*p.scale, y1*p.scale, x2*p.scale, y2*p.scale)
	}
}

func (p *pdfPen) circle(x, y, r float64, s style) {
	if how := p.use(s); how != "" {
		p.f.Circle(x*p.scale, y*p.scale, r*p.scale, how)
	}
}

func (p *pdfPen) text(x, y float64, anchor string, s style, text string) {
	weight := ""
	if s.bold {
		weight = "B"
	}
	text = plain(text)
	p.f.SetFont("go", weight, s.size*p.scale)
	p.f.SetTextColor(int(s.fill.R), int(s.fill.G), int(s.fill.B))
	p.f.Text(x*p.scale-shift(anchor)*p.f.GetStringWidth(text), y*p.scale, text)
}

// shift is the part of a text's width that is left of its place.
func shift(anchor string) float64 {
	switch anchor {
	case "middle":
		return 0.5
	case "end":
		return 1
	}
	return 0
}
