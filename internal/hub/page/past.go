// SPDX-License-Identifier: Apache-2.0

package page

import (
	"math"
	"time"

	"homenode/internal/hub/query"
	"homenode/internal/render"
	"homenode/internal/store"
)

// mostPoints of a history: a picture is some 900 pixels wide.
const mostPoints = 600

// past draws a history. What is unknown leaves a gap.
func (r *request) past(a store.Table, ofService bool) []render.Panel {
	ratio := r.plot(a, "", 1, render.WholePercent,
		curve{"local_ratio", "local access ratio", "s2"}, curve{"bound_ratio", "share of the time bound", "s3 dashed"})
	var panels []render.Panel
	add := func(p render.Plot, id, title, sub string) {
		if !p.Empty() {
			panels = append(panels, p.Panel(id, title, sub))
		}
	}
	add(ratio, "past-local", "Local access ratio", "share of DRAM reads; "+howOf(a, "local_how"))
	each := ""
	if ofService {
		each = "mean of an instance"
		add(r.plot(a, "", 1, render.Short, curve{"instances", "instances", "s2"}), "past-instances", "Instances", "workloads with a window")
	}
	add(r.plot(a, "", 0, render.Short, curve{"cpus", "CPUs", "s1"}), "past-cpu", "CPUs' worth of time", render.Or(each, "of this workload")+"; "+howOf(a, "cpu_how"))
	add(r.plot(a, "bytes/s", 0, render.Short, curve{"traffic_bytes_per_s", "traffic", "s4"}), "past-traffic", "Traffic", render.Or(each, "between its caches and memory")+"; "+howOf(a, "traffic_how"))
	return panels
}

// howOf is how the figures of a history are known: every way that occurs.
func howOf(a store.Table, column string) string {
	var ways []string
	seen := map[string]bool{}
	for _, row := range a.Rows {
		if how := a.Text(row, column); how != "" && !seen[how] {
			seen[how] = true
			ways = append(ways, how)
		}
	}
	return render.OrUnknown(render.List(ways))
}

type curve struct{ column, name, class string }

func (r *request) plot(a store.Table, label string, least float64, print func(float64) string, curves ...curve) render.Plot {
	from, until := r.question.From, r.question.Until
	step := stepOf(until.Sub(from))
	p := render.Plot{Wide: 540, X: render.Axis{Low: seconds(from), High: seconds(until), Step: step.Seconds(), Print: clock(step)}, Y: render.Axis{Label: label, High: least, Print: print}}
	for _, c := range curves {
		line := render.Line{Name: c.name, Class: c.class, Joined: true, Marked: len(a.Rows) < 3}
		for _, row := range a.Rows {
			at, ok := a.Cell(row, "at").(time.Time)
			if !ok {
				continue
			}
			y, known := a.Number(row, c.column)
			if !known {
				y = math.NaN()
			}
			line.Points = append(line.Points, render.Point{X: render.Exactly(seconds(at)), Y: render.Exactly(y)})
		}
		p.Lines = append(p.Lines, line)
	}
	return p
}

func seconds(t time.Time) float64 { return float64(t.Unix()) }

// stepOf is a round time, so that an axis has some six ticks.
func stepOf(span time.Duration) time.Duration {
	const day = 24 * time.Hour
	for _, step := range []time.Duration{time.Minute, 5 * time.Minute, 10 * time.Minute, 30 * time.Minute, time.Hour, 2 * time.Hour, 4 * time.Hour, 12 * time.Hour, day, 2 * day, 7 * day, 14 * day, 30 * day, 90 * day} {
		if span/step <= 7 {
			return step
		}
	}
	return 365 * day
}

// clock prints a tick: the hour, or the day where ticks are days apart.
func clock(step time.Duration) func(float64) string {
	layout := "15:04"
	if step >= 24*time.Hour {
		layout = "Jan 2"
	}
	return func(v float64) string { return time.Unix(int64(v), 0).UTC().Format(layout) }
}

// figure prints a cell of a column.
func figure(a store.Table, row []any, name string) string {
	return query.Cell(columnOf(a, name).Unit, a.Cell(row, name))
}
