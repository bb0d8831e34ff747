// SPDX-License-Identifier: Apache-2.0

package arena

import (
	"cmp"
	"fmt"
)

// Verdict is what became of a paper's statement.
type Verdict string

// The verdicts.
const (
	Confirmed    Verdict = "confirmed"
	NotConfirmed Verdict = "not confirmed"
	CannotTest   Verdict = "cannot be tested here"
	NotJudged    Verdict = "not judged" // only shown beside ours; no stored result has it
)

// ToReach is whose statement a row is that is no paper's, but what was to be reached.
const ToReach = "to reach"

// Row is a paper's statement beside what came of it here.
type Row struct {
	Paper string `json:"paper"` // "Rao 2013", "Lakew 2025", "MAO"
	// Section is where the paper says it; "": our text of the paper does not tell.
	Section   string  `json:"section,omitempty"`
	Statement string  `json:"statement"` // in our words
	Theirs    string  `json:"theirs"`    // figure, with unit; "–": it gives none
	Ours      string  `json:"ours"`
	Verdict   Verdict `json:"verdict"`
	Sentence  string  `json:"sentence"` // why, with the figures that it was judged by
	// Target: homenode was to reach it, and 'make bench-arena' fails where it is not
	// confirmed.
	Target bool `json:"target,omitempty"`
}

// Statement is a paper's, and how it is judged by an F: a row of the table of statements.
type Statement[F any] struct {
	Paper  string
	Text   string // in our words
	Theirs string // figure, with unit; "–": it gives none
	Target bool
	Judge  func(by F) Finding
}

// Finding is what became of a statement.
type Finding struct {
	Ours     string  // "": there is no figure
	Verdict  Verdict // "": it cannot be tested
	Sentence string
}

// NoRuns is the finding of a statement for which a result lacks runs.
var NoRuns = Finding{Sentence: "The result has no runs to tell from."}

// Found is the finding of a statement that was tested.
func Found(yes bool, ours, sentence string) Finding { return Finding{ours, VerdictOf(yes), sentence} }

// Untested is the finding of one that was not, and why.
func Untested(format string, args ...any) Finding {
	return Finding{Sentence: fmt.Sprintf(format, args...)}
}

// VerdictOf is of a statement that was tested.
func VerdictOf(yes bool) Verdict {
	if yes {
		return Confirmed
	}
	return NotConfirmed
}

// Judge has a row for each statement.
func Judge[F any](all []Statement[F], by F) (rows []Row) {
	for _, s := range all {
		f := s.Judge(by)
		rows = append(rows, Row{
			Paper: s.Paper, Statement: s.Text, Theirs: s.Theirs, Ours: cmp.Or(f.Ours, "–"), Verdict: cmp.Or(f.Verdict, CannotTest),
			Sentence: f.Sentence, Target: s.Target,
		})
	}
	return rows
}
