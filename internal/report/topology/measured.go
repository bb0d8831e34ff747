// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"fmt"
	"math"
	"strconv"

	"homenode/internal/machine"
	"homenode/internal/profile"
	"homenode/internal/render"
	"homenode/internal/unit"
)

// Option adds to what is shown.
type Option func(*facts)

// WithProfile adds what the machine was measured to do: latency and bandwidth from
// node to node. The caller has made sure that the profile is of this machine.
func WithProfile(p profile.Profile) Option { return func(f *facts) { f.profile = &p } }

// measures are the matrices of a profile.
type measure struct {
	title, sub string
	of         func(from, to int) (profile.Figure, bool)
	print      func(float64) string
}

// measures of those that the profile has.
func (f facts) measures() []measure {
	var list []measure
	if f.profile == nil {
		return nil
	}
	p := *f.profile
	if len(p.Latency) > 0 {
		list = append(list, measure{"Latency, " + f.profileHow(), "ns a load", p.LatencyBetween,
			render.Tenths})
	}
	if len(p.Bandwidth) > 0 {
		list = append(list, measure{"Bandwidth, " + f.profileHow(), "GB/s (10^9) read by all CPUs of the node", p.BandwidthBetween,
			func(v float64) string { return render.Tenths(v / 1e9) }})
	}
	return list
}

// profileHow is never left out: a modelled figure is not shown as a measured one,
// nor two CPUs' as the machine's.
func (f facts) profileHow() string {
	how := render.How(f.profile.How)
	if only := f.profile.Only(); only != "" {
		how += " with " + only
	}
	return how
}

// profileDate says when it was: machines change.
func (f facts) profileDate() string {
	if f.profile.Date.IsZero() {
		return "at an unknown time"
	}
	return "on " + f.profile.Date.UTC().Format("2006-01-02")
}

// cell is a figure, or "?".
func (m measure) cell(from, to int) string {
	f, _ := m.of(from, to)
	v, ok := f.Median.Get()
	if !ok {
		return "?"
	}
	return m.print(v)
}

// starts are the nodes whose CPUs can be measured from.
func (f facts) starts() []machine.Node {
	var list []machine.Node
	for _, n := range f.Nodes {
		if !n.CPUs.IsEmpty() {
			list = append(list, n)
		}
	}
	return list
}

func (f facts) unknownMark(m measure) string {
	for _, from := range f.starts() {
		for _, to := range f.Nodes {
			if m.cell(from.ID, to.ID) == "?" {
				return "; ? is unknown"
			}
		}
	}
	return ""
}

func (f facts) measuredText(b *render.Terminal) {
	for _, m := range f.measures() {
		t := table{{"from\\to"}}
		for _, n := range f.Nodes {
			t[0] = append(t[0], strconv.Itoa(n.ID))
		}
		for _, from := range f.starts() {
			row := []string{strconv.Itoa(from.ID)}
			for _, to := range f.Nodes {
				row = append(row, m.cell(from.ID, to.ID))
			}
			t = append(t, row)
		}
		fmt.Fprintf(b, "\n%s %s (%s%s)\n", m.title, f.profileDate(), m.sub, f.unknownMark(m))
		t.write(b, "")
	}
}

// profileDoc is what a profile says of two nodes.
type profileDoc struct {
	From      int               `json:"from_node"`
	To        int               `json:"to_node"`
	Latency   unit.Opt[float64] `json:"latency_ns"`
	Bandwidth unit.Opt[float64] `json:"read_bytes_per_s"`
	How       unit.Source       `json:"how"`
	Only      string            `json:"only,omitempty"` // what was measured with, if not the whole machine
	Why       string            `json:"why,omitempty"`  // one of them is unknown
}

func (f facts) profileDocs() []profileDoc {
	docs := []profileDoc{}
	if f.profile == nil {
		return docs
	}
	for _, from := range f.starts() {
		for _, to := range f.Nodes {
			latency, _ := f.profile.LatencyBetween(from.ID, to.ID)
			bandwidth, _ := f.profile.BandwidthBetween(from.ID, to.ID)
			d := profileDoc{From: from.ID, To: to.ID, Latency: latency.Median, Bandwidth: bandwidth.Median, How: f.profile.How, Only: f.profile.Only(), Why: latency.Why}
			if d.Why == "" {
				d.Why = bandwidth.Why
			}
			d.Why = render.Printable(d.Why)
			docs = append(docs, d)
		}
	}
	return docs
}

// maxMeasured is how many nodes' figures fit the picture; JSON has them all.
const maxMeasured = 24

// measuredPanels are heat maps of what was measured, numbers on colours.
func (f facts) measuredPanels() []panel {
	var list []panel
	if len(f.Nodes) > maxMeasured {
		return nil
	}
	for _, m := range f.measures() {
		w, h := 44.0, 28.0
		for _, from := range f.starts() {
			for _, to := range f.Nodes {
				w = max(w, render.TextWidth(m.cell(from.ID, to.ID), 12)+8)
			}
		}
		list = append(list, panel{title: m.title, sub: m.sub + ", " + f.profileDate() + f.unknownMark(m),
			w: 30 + float64(len(f.Nodes))*w, h: 18 + float64(len(f.starts()))*h,
			draw: func(c *canvas, x, y float64) { f.drawMeasure(c, m, x, y, w, h) }})
	}
	return list
}

func (f facts) drawMeasure(c *canvas, m measure, x, y, w, h float64) {
	low, high := f.rangeOf(m)
	for j, to := range f.Nodes {
		c.middle(x+30+(float64(j)+0.5)*w, y+12, "head", strconv.Itoa(to.ID))
	}
	for i, from := range f.starts() {
		top := y + 18 + float64(i)*h
		c.right(x+24, top+h/2+4, "head", strconv.Itoa(from.ID))
		for j, to := range f.Nodes {
			left := x + 30 + float64(j)*w
			fig, _ := m.of(from.ID, to.ID)
			if v, ok := fig.Median.Get(); ok {
				c.Cell(left, top, w, h, (v-low)/max(high-low, 0.1*high), m.cell(from.ID, to.ID), from.ID == to.ID)
				continue
			}
			c.Rect(left, top, w, h, "cell none", 0)
			c.middle(left+w/2, top+h/2+4.5, "num", "?")
		}
	}
}

func (f facts) rangeOf(m measure) (low, high float64) {
	low = math.Inf(1)
	for _, from := range f.starts() {
		for _, to := range f.Nodes {
			if fig, _ := m.of(from.ID, to.ID); fig.Median.Known() {
				low, high = min(low, fig.Median.Or(0)), max(high, fig.Median.Or(0))
			}
		}
	}
	return low, high
}
