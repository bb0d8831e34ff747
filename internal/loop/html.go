// SPDX-License-Identifier: Apache-2.0

package loop

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"math"
	"strings"

	"homenode/internal/render"
	"homenode/internal/unit"
)

//go:embed loop.tmpl
var page string

var document = render.NewPage(page, render.PictureStyle, nil)

// HTML writes one self-contained page: no scripts, nothing fetched.
func HTML(w io.Writer, r Report) error {
	type service struct {
		Name, Why string
		Steps     []string
	}
	var services []service
	for i, o := range r.Services {
		s := service{Name: render.Name(o.Service), Why: "The model: " + r.Sensitivity.Services[i].Reason + ". Verdict: " + string(o.Verdict) + "."}
		for _, step := range o.Steps {
			s.Steps = append(s.Steps, render.Span(step.After)+": "+step.Sentence)
		}
		if len(o.Steps) == 0 {
			s.Steps = []string{"left alone: no rollout was started"}
		}
		services = append(services, s)
	}
	data := struct {
		Lead     string
		Answer   []string
		Badges   []string
		Picture  template.HTML
		Table    render.Grid
		Services []service
		How      string
	}{
		r.lead(), r.answer(), []string{render.Printable(r.Machine), render.Count(r.Hosts, "host"), render.Span(r.Took) + " of the simulated clock", fmt.Sprintf("seed %d", r.Seed)},
		r.picture().Picture(), r.table(), services, r.how(),
	}
	if err := document().Execute(w, data); err != nil {
		return fmt.Errorf("write page: %w", err)
	}
	return nil
}

// Text writes the same for a terminal.
func Text(w io.Writer, r Report, o render.TextOptions) error {
	p := o.Terminal()
	p.Wrapped("", r.lead())
	for _, line := range r.answer() {
		p.Wrapped("", line)
	}
	p.Line("")
	g := r.table()
	t := render.TableOf(g.Keys, 24, 28, g.Heads...)
	for _, row := range g.Rows {
		t.Add(render.Each(row, func(c render.Cell) string { return c.Text })...)
	}
	p.Table(t)
	p.Line("")
	p.Wrapped("", r.how())
	return p.Flush(w, "loop")
}

func (r Report) count(is func(Outcome) bool) (n int) {
	for _, o := range r.Services {
		if is(o) {
			n++
		}
	}
	return n
}

func (r Report) lead() string {
	return fmt.Sprintf("%s of %d bound with a proven gain, %d undone, %d left alone, of which binding would have hurt %d.",
		render.Count(r.count(Outcome.proven), "service"), len(r.Services), r.count(Outcome.undone), r.count(Outcome.left), r.count(Outcome.spared))
}

func (r Report) answer() []string {
	var gains []string
	for _, o := range r.Services {
		if x, ok := o.Gain.Get(); ok && o.proven() {
			gains = append(gains, fmt.Sprintf("%s %s", render.Name(o.Service), render.Percent(x)))
		}
	}
	all := []string{"Saved of the mean latency in the last hour: " + render.Or(strings.Join(gains, ", "), "nothing") + "."}
	if r.Fault.Service != "" {
		found := ""
		if r.count(func(o Outcome) bool { return o.undone() && o.Service == r.Fault.Service }) > 0 {
			found = " The rollout found it."
		}
		all = append(all, fmt.Sprintf("A fault was put into %s: where it is bound its latency is %s longer, by something that no counter shows. The model could not know.%s",
			render.Name(r.Fault.Service), render.Percent(r.Fault.Slower), found))
	}
	if r.RowCount > 0 {
		all = append(all, "What the rollouts found is what the next model learns from: "+render.Count(r.RowCount, "row")+".")
	}
	return all
}

func (r Report) how() string {
	m := r.Sensitivity.Model
	return fmt.Sprintf("Every figure is modelled: hosts, loads and clock are simulated (internal/sim); the store, the model of gains, the rollouts and the policy are those of homenode. The model: %s of %s, %s.",
		render.Count(m.Rows, "trial"), render.Count(m.Services, "service"), render.Printable(m.MadeBy))
}

func percent(x unit.Opt[float64]) string {
	if v, ok := x.Get(); ok {
		return render.Percent(v)
	}
	return render.Unknown
}

func (r Report) table() render.Grid {
	g := render.Grid{Heads: []string{"service", "verdict", "expected", "rollout", "shown", "gain", "all bound"}, Keys: 1}
	for _, o := range r.Services {
		rolled, shown := "none", "-"
		switch {
		case o.proven():
			rolled = "bound on all"
		case o.undone():
			rolled = "rolled back"
		case !o.left():
			rolled = string(o.Phase)
		}
		if o.Shown != nil {
			shown = render.Percent(-o.Shown.Effect) + ", at most " + render.Percent(-o.Shown.AtLeast)
			if o.Proven {
				shown = render.Percent(-o.Shown.Effect) + ", over " + render.Percent(o.Shown.GainOver)
			}
		}
		g.AddText(render.Name(o.Service), string(o.Verdict), render.Percent(o.Predicted[1])+" to "+render.Percent(o.Predicted[2]), rolled, shown, percent(o.Gain), percent(o.Blind))
	}
	return g
}

// Geometry of the picture, in CSS pixels.
const (
	wide, nameWide, rowHigh, foot = 620.0, 130.0, 44.0, 26.0
)

// picture draws each service's intervals and points over one axis. What is beyond it has its figure in
// the table.
func (r Report) picture() render.Panel {
	return render.Panel{
		ID: "gains", Title: "Gains by service", Sub: "expected, shown, and reached; the table below has the figures",
		Wide: wide, High: rowHigh*float64(len(r.Services)) + foot, Draw: r.draw,
	}
}

func (r Report) draw(c *render.Canvas) {
	low, high := -0.10, 0.20
	x := func(v float64) float64 {
		return nameWide + (min(max(v, low), high)-low)/(high-low)*(wide-nameWide-20)
	}
	h := rowHigh*float64(len(r.Services)) + foot
	for v := low; v <= high+1e-9; v += 0.05 {
		class := "grid"
		if math.Abs(v) < 1e-9 {
			class = "zero"
		}
		c.Line(x(v), 4, x(v), h-foot+4, class)
		c.Text(x(v), h-8, "small", "middle", render.Percent(math.Round(100*v)/100))
	}
	for i, o := range r.Services {
		y := rowHigh*float64(i) + 8
		c.Text(0, y+14, "", "start", render.Name(o.Service))
		c.Text(0, y+28, "small", "start", string(o.Verdict))
		c.Rect(x(o.Predicted[1]), y+2, x(o.Predicted[2])-x(o.Predicted[1]), 24, "expected", 4)
		if o.Shown != nil {
			c.Rect(x(-o.Shown.AtMost), y+10, max(2, x(-o.Shown.AtLeast)-x(-o.Shown.AtMost)), 8, "shown", 2)
		}
		if v, ok := o.Blind.Get(); ok {
			c.Circle(x(v), y+14, 6, "blinded")
		}
		if v, ok := o.Gain.Get(); ok {
			c.Circle(x(v), y+14, 3.5, "point")
		}
	}
}
