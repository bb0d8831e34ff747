// SPDX-License-Identifier: Apache-2.0

package arena

import (
	"cmp"
	"fmt"
)

// Verdict is the verdict on a paper's statement.
type Verdict string

// The verdicts.
const (
	Confirmed    Verdict = "confirmed"
	NotConfirmed Verdict = "not confirmed"
	CannotTest   Verdict = "cannot be tested here"
	NotJudged    Verdict = "not judged" // only shown beside our figure; no stored result has it
)

// ToReach stands for the paper in rows that are targets of homenode, not a paper's
// statements.
const ToReach = "to reach"

// Row is a paper's statement beside our result.
type Row struct {
	Paper string `json:"paper_name"` // "Rao 2013", "Lakew 2025", "MAO"
	// Section is where the paper says it; "": unknown from our text of the paper.
	Section   string  `json:"section,omitempty"`
	Statement string  `json:"statement"` // in our words
	Theirs    string  `json:"theirs"`    // its figure, with unit; "–": it gives none
	Ours      string  `json:"our_result"`
	Verdict   Verdict `json:"judged"`
	Sentence  string  `json:"sentence"` // the reason, with the figures behind it
	// Target: homenode was to reach it, and 'make bench-arena' fails if it is not
	// confirmed.
	Target bool `json:"is_target,omitempty"`
}

// Statement is a paper's statement, and how an F judges it: a row of the table of
// statements.
type Statement[F any] struct {
	Paper  string
	Text   string // in our words
	Theirs string // its figure, with unit; "–": it gives none
	Target bool
	Judge  func(by F) Finding
}

// Finding is the result of judging a statement.
type Finding struct {
	Ours     string  // "": there is no figure
	Verdict  Verdict // "": it cannot be tested
	Sentence string
}

// NoRuns is the finding for a statement for which a result lacks runs.
var NoRuns = Finding{Sentence: "The result has no runs to tell from."}

// Found is the finding for a statement that was tested.
func Found(yes bool, ours, sentence string) Finding { return Finding{ours, VerdictOf(yes), sentence} }

// Untested is the finding for a statement that was not tested, with the reason.
func Untested(format string, args ...any) Finding {
	return Finding{Sentence: fmt.Sprintf(format, args...)}
}

// VerdictOf is the verdict on a statement that was tested.
func VerdictOf(yes bool) Verdict {
	if yes {
		return Confirmed
	}
	return NotConfirmed
}

// Judge makes a row for each statement.
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
