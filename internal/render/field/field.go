// SPDX-License-Identifier: Apache-2.0

// Package field is the one list of a window's figures: what each is called, in what unit
// it is, what it says, and where it comes from.
//
//	Field{ID, Name, Head, Metric, Unit, Help, Of}
//	        │    │     │      └──────── /metrics: homenode_workload_<Metric>, its HELP
//	        │    │     └─────────────── a table's column: status, top
//	        │    └───────────────────── in words: the detail of top, documents
//	        └────────────────────────── JSON
//
// A face that shows a figure takes its names from here; a test (views) walks the list and
// every face. It is NOT for: how a face arranges figures, or figures of anything but
// windows.
package field

import (
	"homenode/internal/render"
	"homenode/internal/unit"
	"homenode/internal/window"
)

// Unit is what a figure is counted in, and so how it is printed.
type Unit string

// The units.
const (
	Count     Unit = "count"
	CPUs      Unit = "CPUs" // CPUs' worth of time
	Share     Unit = "ratio"
	Amount    Unit = "bytes"
	PerSecond Unit = "bytes/s"
	Time      Unit = "s"
)

// Print prints a figure of a unit.
func (u Unit) Print(v float64) string {
	switch u {
	case CPUs:
		return render.CPUs(v)
	case Share:
		return unit.Ratio(v).String()
	case Amount:
		return render.Bytes(v)
	case PerSecond:
		return render.Rate(v)
	case Time:
		return render.Seconds(v)
	}
	return render.Whole(v)
}

// Field is one figure of a T. Of is nil for a figure that there is one of for each node.
type Field[T any] struct {
	ID     string // in JSON
	Name   string // in words
	Head   string // of a column, where tables have it
	Metric string // in /metrics, after the prefix; "" where it is not there
	Unit   Unit
	Width  int // columns that a table keeps for it
	Help   string
	Of     func(T) unit.Value[float64]
	ByNode func(T) []unit.Value[float64]
}

// Text prints the figure, or that it is unknown.
func (f Field[T]) Text(x T) string { return render.Show(f.Of(x).V, f.Unit.Print) }

// Marked is Text with how the figure is known, where it is not measured.
func (f Field[T]) Marked(x T) string {
	v := f.Of(x)
	return render.Show(v.V, f.Unit.Print) + render.Mark(v.How)
}

// Explained is Text with how the figure is known and from what; of an unknown one, why.
func (f Field[T]) Explained(x T) string {
	v := f.Of(x)
	switch {
	case !v.Known() && v.From == "":
		return "?"
	case !v.Known():
		return "? (" + v.From + ")"
	}
	return f.Text(x) + " (" + render.Source(v.How, v.From) + ")"
}

// number is a value of any kind as a float.
func number[T ~float64 | ~int64 | ~uint64 | ~int](v unit.Value[T]) unit.Value[float64] {
	x, ok := v.Get()
	if !ok {
		return unit.UnknownValue[float64](v.From)
	}
	return unit.ValueOf(float64(x), v.How, v.From)
}

func numbers[T ~float64 | ~int64](all []unit.Value[T]) []unit.Value[float64] {
	return render.Each(all, number[T])
}

// perSecond is a window's amount as a rate; unknown where the window has no length.
func perSecond(v unit.Value[unit.Bytes], w *window.Window) unit.Value[float64] {
	b, ok := v.Get()
	if !ok || w.Length <= 0 {
		return unit.UnknownValue[float64](v.From)
	}
	return unit.ValueOf(float64(b)/w.Length.Seconds(), v.How, v.From)
}
