// SPDX-License-Identifier: Apache-2.0

package unit

import (
	"encoding/json"
	"fmt"
)

// Source is how a figure is known. The order is meant: a figure is as good as
// the weakest it was made from (Weakest).
type Source uint8

const (
	HowUnknown   Source = iota // there is no figure
	HowEstimated               // derived from other figures under an assumption
	HowModelled                // counted by a model of the hardware (the lab, the simulator, a fitted model)
	HowMeasured                // counted by the hardware or the kernel
)

var sourceNames = [...]string{"unknown", "estimated", "modelled", "measured"}

// String is "measured", "modelled", "estimated" or "unknown".
func (s Source) String() string {
	if int(s) >= len(sourceNames) {
		return fmt.Sprintf("Source(%d)", uint8(s))
	}
	return sourceNames[s]
}

// ParseSource reads what String prints.
func ParseSource(text string) (Source, error) {
	for i, name := range sourceNames {
		if name == text {
			return Source(i), nil
		}
	}
	return HowUnknown, fmt.Errorf("parse source %q: want measured, modelled, estimated or unknown", clip(text))
}

// MarshalText writes the name.
func (s Source) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads the name.
func (s *Source) UnmarshalText(text []byte) (err error) {
	*s, err = ParseSource(string(text))
	return err
}

// Weakest returns the source of a figure made from figures of these sources;
// of none it is unknown.
func Weakest(sources ...Source) Source {
	if len(sources) == 0 {
		return HowUnknown
	}
	weakest := sources[0]
	for _, s := range sources[1:] {
		weakest = min(weakest, s)
	}
	return weakest
}

// WeakestKnown is Weakest of the sources that are not unknown.
func WeakestKnown(sources ...Source) Source {
	weakest := HowUnknown
	for _, s := range sources {
		if s != HowUnknown && (weakest == HowUnknown || s < weakest) {
			weakest = s
		}
	}
	return weakest
}

// Value is a figure, how it is known, and what it comes from. The zero Value is
// unknown. Invariant of the constructors: V is known iff How is not HowUnknown.
type Value[T any] struct {
	V    Opt[T]
	How  Source
	From string // which counter or file: "perf r01d3", "memory.numa_stat"; of an unknown value: why it is
}

// Measured is a figure that the hardware or the kernel counted.
func Measured[T any](v T, from string) Value[T] { return ValueOf(v, HowMeasured, from) }

// Modelled is a figure that a model of the hardware counted.
func Modelled[T any](v T, from string) Value[T] { return ValueOf(v, HowModelled, from) }

// Estimated is a figure derived from others under an assumption.
func Estimated[T any](v T, from string) Value[T] { return ValueOf(v, HowEstimated, from) }

// UnknownValue is no figure, and why there is none.
func UnknownValue[T any](why string) Value[T] { return Value[T]{From: why} }

// ValueOf keeps the invariant also where Some finds that v is no figure.
func ValueOf[T any](v T, how Source, from string) Value[T] {
	o := Some(v)
	if !o.Known() {
		return UnknownValue[T](from + ": not a finite number")
	}
	return Value[T]{V: o, How: how, From: from}
}

// Get returns the figure and whether it is known.
func (v Value[T]) Get() (T, bool) { return v.V.Get() }

// Known reports whether there is a figure.
func (v Value[T]) Known() bool { return v.V.Known() }

// Or returns the figure, or other when unknown.
func (v Value[T]) Or(other T) T { return v.V.Or(other) }

// String is for people: "512MiB (measured, memory.numa_stat)".
func (v Value[T]) String() string {
	if v.From == "" {
		return fmt.Sprintf("%v (%v)", v.V, v.How)
	}
	if !v.Known() {
		return fmt.Sprintf("unknown (%s)", v.From)
	}
	return fmt.Sprintf("%v (%v, %s)", v.V, v.How, v.From)
}

// valueJSON is the wire form: {"value":3,"how":"measured","from":"perf r01d3"}.
type valueJSON[T any] struct {
	Value Opt[T] `json:"value"`
	How   Source `json:"how"`
	From  string `json:"from,omitempty"`
}

// MarshalJSON writes {"value":…|null,"how":…,"from":…}.
func (v Value[T]) MarshalJSON() ([]byte, error) {
	return json.Marshal(valueJSON[T]{Value: v.V, How: v.How, From: v.From})
}

// UnmarshalJSON reads that form. A value without a source, or a source without
// a value, is refused; on error v becomes unknown.
func (v *Value[T]) UnmarshalJSON(data []byte) error {
	*v = Value[T]{}
	var w valueJSON[T]
	if err := json.Unmarshal(data, &w); err != nil {
		return err
	}
	if w.Value.Known() != (w.How != HowUnknown) {
		return fmt.Errorf(`parse value: "how" is %q but "value" is %v: one of them is wrong`, w.How, w.Value)
	}
	*v = Value[T]{V: w.Value, How: w.How, From: w.From}
	return nil
}
