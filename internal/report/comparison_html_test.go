// SPDX-License-Identifier: Apache-2.0

package report

import (
	"encoding/xml"
	"fmt"
	"io"
	"regexp"
	"strings"
	"testing"

	"homenode/internal/experiment"
	"homenode/internal/render"
	"homenode/internal/unit"
)

// seen is what a strict XML parser finds in a page.
type seen struct {
	text     string
	elements map[string]int
	ids      map[string]int
	refs     []string // ids that labels point at
	fetches  []string // attributes that make a browser fetch
}

func parse(t *testing.T, page string) seen {
	t.Helper()
	s := seen{elements: map[string]int{}, ids: map[string]int{}}
	d := xml.NewDecoder(strings.NewReader(page))
	var text strings.Builder
	for {
		token, err := d.Token()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatalf("the page is not well-formed: %v", err)
		}
		switch token := token.(type) {
		case xml.CharData:
			text.Write(token)
		case xml.StartElement:
			s.elements[token.Name.Local]++
			s.attributes(token.Attr)
		}
	}
	s.text = text.String()
	return s
}

func (s *seen) attributes(list []xml.Attr) {
	for _, a := range list {
		switch a.Name.Local {
		case "id":
			s.ids[a.Value]++
		case "aria-labelledby":
			s.refs = append(s.refs, strings.Fields(a.Value)...)
		case "src", "href", "srcset", "data", "action", "poster", "style", "background":
			s.fetches = append(s.fetches, a.Value)
		}
		if strings.HasPrefix(a.Name.Local, "on") {
			s.fetches = append(s.fetches, a.Value)
		}
	}
}

func TestDecisionPageIsWellFormedAndSelfContained(t *testing.T) {
	remote := regexp.MustCompile(`(?i)url\(|@import|https?:|src=|<link|<script|<iframe|<img`)
	for name, c := range comparisons(t) {
		page := drawn(t, ComparisonHTML, c)
		s := parse(t, page)
		bare := strings.ReplaceAll(page, `xmlns="http://www.w3.org/2000/svg"`, "") // a name, never fetched
		bare = strings.ReplaceAll(bare, `[e](http://evil.example/)`, "")           // the hostile fixture's machine, as text
		if found := remote.FindString(bare); found != "" || len(s.fetches) > 0 {
			t.Errorf("%s: the page fetches or runs something: %q %q", name, found, s.fetches)
		}
		for id, n := range s.ids {
			if n != 1 {
				t.Errorf("%s: id %q appears %d times", name, id, n)
			}
		}
		for _, ref := range s.refs {
			if s.ids[ref] == 0 {
				t.Errorf("%s: a label points at %q, which is not there", name, ref)
			}
		}
		if n := s.elements["svg"]; n < 5 || s.elements["desc"] != n || s.elements["title"] != n+1 {
			t.Errorf("%s: %d charts, %d descriptions, %d titles", name, n, s.elements["desc"], s.elements["title"])
		}
		if strings.Contains(page, "ZgotmplZ") {
			t.Errorf("%s: the template refused a value", name)
		}
	}
}

func TestDecisionPageEscapes(t *testing.T) {
	page := drawn(t, ComparisonHTML, comparisons(t)["hostile"])
	if strings.Contains(page, "<script") || strings.Count(page, "</style>") != 1 {
		t.Error("a name became markup")
	}
	s := parse(t, page)
	if !strings.Contains(s.text, `<script>alert("1")</script>`) {
		t.Error("the name is not shown as it is")
	}
	md := drawn(t, ComparisonMarkdown, comparisons(t)["hostile"])
	if strings.Contains(md, "<script") || strings.Contains(md, "a|b") || strings.Contains(md, "](http://") {
		t.Error("a name became Markdown's markup")
	}
}

// Every figure of the comparison is in the page's text.
func TestParityPageHasEveryFigure(t *testing.T) {
	checked := 0
	for name, c := range comparisons(t) {
		words := strings.Join(strings.Fields(parse(t, drawn(t, ComparisonHTML, c)).text), " ")
		need := func(what, figure string) {
			checked++
			if !strings.Contains(words, strings.Join(strings.Fields(figure), " ")) {
				t.Errorf("%s: %s %q is not on the page", name, what, figure)
			}
		}
		c = cleanComparison(c)
		for _, f := range facts(c) {
			need(f.Name, f.Text)
		}
		for _, a := range c.Arms {
			needArm(need, a)
		}
		if c.Long != nil {
			need("longer", longGrid(*c.Long).Caption)
			for _, a := range c.Long.Arms {
				need("longer", a.Title)
				need("longer, ratio", render.Show(a.LocalAccessRatio, render.Ratio))
				for _, s := range a.Services {
					need("longer, throughput", render.Show(s.OpsPerModelS, figure))
				}
			}
		}
		for _, target := range c.Targets {
			for _, text := range []string{target.Name, target.Want, got(target), target.Note} {
				need("target", text)
			}
		}
		for _, text := range c.Order {
			need("run", text)
		}
	}
	if checked < 1000 {
		t.Errorf("checked %d figures only", checked)
	}
}

func needArm(need func(what, figure string), a experiment.Arm) {
	needOpt := func(what string, o unit.Opt[float64], print func(float64) string) {
		if v, ok := o.Get(); ok && a.Applicable {
			need(what, print(v))
		}
	}
	needOpt("local access ratio", a.LocalAccessRatio, render.Ratio)
	needOpt("pages moved", a.PagesMoved, render.Commas)
	needOpt("mover CPU", a.MoverCPUSeconds, render.Seconds)
	needOpt("mover CPU share", a.MoverCPUShare, shareOfCPU)
	need("why", a.Why)
	for _, d := range a.Detail {
		need("detail", d)
	}
	needSummary(need, a.LocalSpread)
	for _, s := range a.Services {
		need("service", s.Name)
		needOpt("throughput", s.OpsPerModelS, figure)
		needOpt("cycles", s.CyclesPerOp, figure)
		needOpt("local access ratio", s.LocalAccessRatio, render.Ratio)
		needOpt("CPUs", s.CPUs, times)
		needOpt("p50", s.LatencyP50us, millis)
		needOpt("p99", s.LatencyP99us, millis)
		needSummary(need, s.Spread)
	}
}

func needSummary(need func(what, figure string), s experiment.Summary) {
	if s.N == 0 {
		return
	}
	for _, v := range append([]float64{s.Median, s.Min, s.Max, s.Mean}, s.Values...) {
		need("repeat", figure(v))
	}
	if s.N > 1 {
		need("standard deviation", figure(s.SD))
	}
	need("n", fmt.Sprint(s.N))
}
