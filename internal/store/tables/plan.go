// SPDX-License-Identifier: Apache-2.0

package tables

import (
	"math"
	"time"
)

// Level is how far rows are rolled up.
type Level int

// The levels. The name of a level's table is the kind's, with Suffix.
const (
	Raw Level = iota
	Minutes
	Hours
)

var (
	sizes    = [...]time.Duration{time.Millisecond, time.Minute, time.Hour}
	suffixes = [...]string{"", "_minutes", "_hours"}
)

// Size is what a row of the level spans.
func (l Level) Size() time.Duration { return sizes[l] }

// Suffix is what a level's tables end in.
func (l Level) Suffix() string { return suffixes[l] }

// Kept is from when on each level has rows, in Millis, at the start of an hour.
type Kept [3]int64

// Piece is a time that one level answers: Until is not included.
type Piece struct {
	Level
	From, Until int64
}

// Plan covers a time with the coarsest rows that end where it does.
//
//  1. Whole hours come from hours, what is left at both ends from minutes, and what is left
//     there from raw rows.
//  2. Where the finer rows are no longer kept, an end moves outwards, to the row that has it.
//
// Rows of a step of a history must fit into the step, unless finer ones are no longer kept.
func Plan(from, until int64, step time.Duration, kept Kept) []Piece {
	top := Hours
	for top > Raw && step > 0 && step%top.Size() != 0 {
		top--
	}
	for top < Hours && kept[top] > from {
		top++
	}
	return cover(top, from, until, kept)
}

func cover(level Level, from, until int64, kept Kept) []Piece {
	if from >= until {
		return nil
	}
	if level == Raw {
		return []Piece{{Raw, from, until}}
	}
	first, end := ceil(from, level), Bucket(until, level.Size())
	if Bucket(from, level.Size()) < kept[level-1] {
		first = Bucket(from, level.Size())
	}
	if end < kept[level-1] {
		end = ceil(until, level)
	}
	if first >= end {
		return cover(level-1, from, until, kept)
	}
	pieces := cover(level-1, from, first, kept)
	pieces = append(pieces, Piece{level, first, end})
	return append(pieces, cover(level-1, end, until, kept)...)
}

func ceil(ms int64, level Level) int64 {
	if floor := Bucket(ms, level.Size()); floor < ms {
		return floor + level.Size().Milliseconds()
	}
	return ms
}

// points is how many a history has where no step is asked for.
const points = 200

// stepOf is the step of a history: whole minutes from a minute on, whole hours from an hour on.
func stepOf(from, until int64) time.Duration {
	step := time.Duration(math.Ceil(float64(until-from)/points)) * time.Millisecond
	for _, level := range []Level{Hours, Minutes} {
		if size := level.Size(); step > size {
			return (step + size - 1) / size * size
		}
	}
	return max((step + time.Second - 1).Truncate(time.Second), time.Second)
}
