// SPDX-License-Identifier: Apache-2.0

package picture

import (
	"bytes"
	"image"
	"image/color"
	"image/png"
	"strings"
	"testing"
)

const sample = `<svg xmlns="http://www.w3.org/2000/svg" width="60" height="40" viewBox="0 0 60 40"><title id="t">x</title>
<style>
text{font:12px system-ui,"DejaVu Sans",Arial,sans-serif;fill:#1a1f24}
.page{fill:#fff}
.a,.b{fill:#00f;stroke:#f00;stroke-width:2}
.a.off{fill:url(#hatch);stroke:none}
.l{stroke:#0f0;stroke-width:4;stroke-dasharray:6 4}
.bold{font-weight:700;font-size:16px}
</style>
<defs><pattern id="hatch"><rect width="6" height="6" fill="#f3f4f6"/></pattern></defs>
<rect class="page" width="60" height="40"/>
<rect class="a" x="5" y="5" width="10" height="10"/>
<rect class="a off" x="20" y="5" width="10" height="10" rx="3"/>
<rect class="cell" fill="#102030" x="35" y="5" width="10" height="10"/>
<circle class="b" cx="52" cy="10" r="4"/>
<line class="l" x1="5" y1="20" x2="25" y2="20"/>
<text class="bold" x="58" y="38" text-anchor="end">⚠ 12 &amp; ×</text>
</svg>`

func TestPNG(t *testing.T) {
	var b bytes.Buffer
	if err := PNG(&b, []byte(sample)); err != nil {
		t.Fatal(err)
	}
	m, err := png.Decode(&b)
	if err != nil || m.Bounds() != image.Rect(0, 0, 120, 80) {
		t.Fatalf("%v, %v", m.Bounds(), err)
	}
	at := func(x, y float64) color.NRGBA {
		return color.NRGBAModel.Convert(m.At(int(x*2), int(y*2))).(color.NRGBA)
	}
	for what, c := range map[string]struct {
		x, y float64
		want color.NRGBA
	}{
		"page": {1, 1, color.NRGBA{255, 255, 255, 255}}, "fill": {10, 10, color.NRGBA{0, 0, 255, 255}}, "stroke": {10, 5, color.NRGBA{255, 0, 0, 255}},
		"pattern": {25, 10, hatchColour}, "computed": {40, 10, color.NRGBA{0x10, 0x20, 0x30, 255}}, "circle": {52, 10, color.NRGBA{0, 0, 255, 255}},
		"ring": {52, 14, color.NRGBA{255, 0, 0, 255}}, "dash": {7, 20, color.NRGBA{0, 255, 0, 255}}, "gap": {13, 20, color.NRGBA{255, 255, 255, 255}},
	} {
		if got := at(c.x, c.y); got != c.want {
			t.Errorf("%s at %v,%v is %v, want %v", what, c.x, c.y, got, c.want)
		}
	}
	dark := 0
	for x := range 120 {
		for y := 48; y < 80; y++ {
			if r, _, _, _ := m.At(x, y).RGBA(); r < 0x8000 {
				dark++
			}
		}
	}
	if dark < 100 {
		t.Errorf("the text has %d dark pixels", dark)
	}
}

// The same drawing is the same file.
func TestPDF(t *testing.T) {
	var a, b bytes.Buffer
	if err := PDF(&a, []byte(sample)); err != nil {
		t.Fatal(err)
	}
	if err := PDF(&b, []byte(sample)); err != nil {
		t.Fatal(err)
	}
	if !bytes.HasPrefix(a.Bytes(), []byte("%PDF-1.")) || !bytes.HasSuffix(bytes.TrimSpace(a.Bytes()), []byte("%%EOF")) || !bytes.Equal(a.Bytes(), b.Bytes()) {
		t.Errorf("%d bytes, %d bytes: %.20q", a.Len(), b.Len(), a.Bytes())
	}
	if !bytes.Contains(a.Bytes(), []byte("/MediaBox [0 0 45.00 30.00]")) {
		t.Errorf("the page is not as large as the drawing")
	}
}

// No part of a drawing is lost in silence.
func TestRefuses(t *testing.T) {
	for change, want := range map[[2]string]string{
		{`<line class`, `<polygon class`}:        `unknown element "polygon"`,
		{`.page{fill:#fff}`, `.page{opacity:1}`}: `unknown property "opacity"`,
		{`.page{fill:#fff}`, `.page{fill:red}`}:  `colour "red"`,
		{`.page{fill:#fff}`, `@media x{}`}:       "is no rule",
		{`cx="52"`, `cx="NaN"`}:                  `cx of circle: length "NaN"`,
		{`width="60" height="40" v`, `v`}:        "want one <svg> with width and height",
		{`</svg>`, ``}:                           "unexpected EOF",
	} {
		text := strings.Replace(sample, change[0], change[1], 1)
		for _, write := range []func(*bytes.Buffer) error{
			func(b *bytes.Buffer) error { return PNG(b, []byte(text)) },
			func(b *bytes.Buffer) error { return PDF(b, []byte(text)) },
		} {
			var b bytes.Buffer
			if err := write(&b); err == nil || !strings.Contains(err.Error(), want) || b.Len() > 0 {
				t.Errorf("%v: %v, want %q", change, err, want)
			}
		}
	}
	huge := strings.Replace(sample, `width="60" height="40"`, `width="9000" height="9000"`, 1)
	if err := PNG(new(bytes.Buffer), []byte(huge)); err == nil || !strings.Contains(err.Error(), "SVG and PDF have no such limit") {
		t.Errorf("a huge PNG: %v", err)
	}
	if err := PDF(new(bytes.Buffer), []byte(huge)); err != nil {
		t.Errorf("a huge PDF: %v", err)
	}
}
