// SPDX-License-Identifier: Apache-2.0

package arena

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

// Judge is the verdict of a statement that was tested, and the sentence that says why.
func (w *Row) Judge(yes bool, sentence string) { w.Verdict, w.Sentence = VerdictOf(yes), sentence }

// VerdictOf is of a statement that was tested.
func VerdictOf(yes bool) Verdict {
	if yes {
		return Confirmed
	}
	return NotConfirmed
}
