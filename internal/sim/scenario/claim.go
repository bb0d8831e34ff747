// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"fmt"

	"homenode/internal/unit"
)

// Claim is a figure of a paper, shown beside ours.
type Claim struct {
	Figure  string `yaml:"figure" json:"figure"`   // "MAO Fig. 8"
	Service string `yaml:"service" json:"service"` // "": all services
	Arm     string `yaml:"arm" json:"arm"`
	// Against is the arm that the change is relative to; "": it is Arm's own figure.
	Against string `yaml:"against" json:"against"`
	Metric  string `yaml:"metric" json:"metric"` // see Metrics
	// Value is a change, -0.121 for 12.1 % less, or the figure itself. It is unknown where
	// our text of the paper has no figure.
	Value unit.Opt[float64] `yaml:"-" json:"value,omitzero"`
	Note  string            `yaml:"note" json:"note"` // where our figure differs, and why
}

// claimDoc is a claim in a scenario's file.
type claimDoc struct {
	Claim `yaml:",inline"`
	Value *float64 `yaml:"value"`
}

func (d claimDoc) claim() Claim {
	c := d.Claim
	if d.Value != nil {
		c.Value = unit.Some(*d.Value)
	}
	return c
}

// Absolute reports that it is the arm's own figure, and not a change.
func (c Claim) Absolute() bool { return c.Against == "" }

// problems says what is invalid in a claim; known reports whether there is such an arm.
func (c Claim) problems(known func(arm string) bool) (all []problem) {
	add := func(path, format string, args ...any) { all = append(all, problem{path, fmt.Sprintf(format, args...)}) }
	m, ok := MetricOf(c.Metric)
	if !ok {
		add("metric", "there is no %.40q: want one of %s", c.Metric, quoted(Metrics(), func(m Metric) string { return m.Name }))
	} else if c.Service != "" && !m.OfServices() {
		add("metric", "%s is of all services together: leave service out", m.Name)
	}
	if !known(c.Arm) {
		add("arm", "there is no arm %.100q", c.Arm)
	}
	if !c.Absolute() && !known(c.Against) {
		add("against", "there is no arm %.100q", c.Against)
	} else if !c.Absolute() && c.Against == c.Arm {
		add("against", "it is the arm itself: name another, or leave it out for the arm's own figure")
	}
	switch v, ok := c.Value.Get(); {
	case !ok || !c.Absolute():
	case v < 0:
		add("value", "it is %v, of the arm's own figure: for a change name the arm it is against", v)
	case m.Share && v > 1:
		add("value", "it is %v, of a share: want 0 to 1", v)
	}
	return all
}

// Judged is a paper's figure beside ours.
type Judged struct {
	Claim
	Ours Spread `json:"our_spread"`    // a change or a figure, like Claim.Value; N 0: there is none
	Why  string `json:"why,omitempty"` // why there is none
}

// Judge looks up every claim of the paper.
func Judge(r Result) []Judged {
	var all []Judged
	for _, c := range r.Paper {
		j := Judged{Claim: c}
		j.Ours, j.Why = r.ours(c)
		all = append(all, j)
	}
	return all
}

// ours is the result's figure for a claim; why says what is missing.
func (r Result) ours(c Claim) (ours Spread, why string) {
	m, known := MetricOf(c.Metric)
	a, there := r.outcome(c.Arm)
	base, beside := r.outcome(c.Against)
	switch {
	case !there:
		return ours, fmt.Sprintf("no arm of this result is called %q", c.Arm)
	case !c.Absolute() && !beside:
		return ours, fmt.Sprintf("no arm of this result is called %q", c.Against)
	case c.Arm == c.Against:
		return ours, "the arm is compared with itself"
	case !known:
		return ours, "this result has no such figure"
	case c.Absolute():
		ours, why = m.Over(a, c.Service), "this result has no such figure"
	default:
		ours, why = m.Against(a, base, c.Service).Change(), "there is nothing to compare with"
	}
	if ours.N > 0 {
		why = ""
	}
	return ours, why
}
