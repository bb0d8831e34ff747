// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"math"

	"homenode/internal/experiment"
	"homenode/internal/render"
)

// comparisonHeadline states the result in sentences, the best and the worst news alike:
//
//  1. locality, against the first arm and the best peer;
//  2. throughput of the sensitive services, against the best peer and the ceiling;
//  3. the targets, those missed by name;
//  4. the arms ahead of homenode, and in what, also after a longer warm-up.
func comparisonHeadline(c experiment.Comparison) []string {
	us, ok := c.Arm(ours)
	if !ok || !us.Applicable {
		return []string{"No run of homenode counted: there is nothing to compare." + because(us.Why)}
	}
	out := []string{localitySentence(c, us)}
	if text := throughputSentence(c, us); text != "" {
		out = append(out, text)
	}
	out = append(out, targetSentence(c.Targets))
	out = append(out, aheadSentences(c, us)...)
	if l, ok := longer(c); ok {
		out = append(out, aheadSentences(afterWarmup(l), us)...)
	}
	return out
}

// afterWarmup names the peers by their warm-up.
func afterWarmup(l experiment.Comparison) experiment.Comparison {
	l.Arms = render.Each(l.Arms, func(a experiment.Arm) experiment.Arm {
		a.Title += " after " + render.Positive(l.WarmupSeconds, modelSeconds)
		return a
	})
	return l
}

func because(why string) string {
	if why == "" {
		return ""
	}
	return " Why: " + why + "."
}

// peers are the arms that homenode is compared with: neither it nor the ceiling.
func peers(c experiment.Comparison) []experiment.Arm {
	var out []experiment.Arm
	for _, a := range c.Arms {
		if a.Applicable && a.Name != ours && a.Name != ceiling {
			out = append(out, a)
		}
	}
	return out
}

func localitySentence(c experiment.Comparison, us experiment.Arm) string {
	local, ok := us.LocalAccessRatio.Get()
	if !ok {
		return "homenode's local access ratio is unknown."
	}
	text := fmt.Sprintf("Under homenode %s of the sensitive services' memory accesses were local", render.Percent(local))
	best, title := math.Inf(-1), ""
	for _, p := range peers(c) {
		if v, ok := p.LocalAccessRatio.Get(); ok && v > best {
			best, title = v, p.Title
		}
	}
	if title == "" {
		return text + "; no peer's ratio is known."
	}
	if first, ok := c.Arms[0].LocalAccessRatio.Get(); ok && c.Arms[0].Applicable && c.Arms[0].Title != title && c.Arms[0].Name != ours {
		return fmt.Sprintf("%s, against %s under %s and %s under the best of its peers, which was %s.", text, render.Percent(first), c.Arms[0].Title, render.Percent(best), title)
	}
	return fmt.Sprintf("%s, against %s under the best of its peers, which was %s.", text, render.Percent(best), title)
}

func throughputSentence(c experiment.Comparison, us experiment.Arm) string {
	var names []string
	peer, top := newSpan(), newSpan()
	hand, _ := c.Arm(ceiling)
	for _, s := range us.Services {
		v, ok := ops(us, s.Name)
		best, _, known := bestPeer(c, s.Name)
		if s.Kind != "sensitive" || !ok || !known {
			continue
		}
		names = append(names, s.Name)
		peer.widen(v / best)
		if limit, ok := ops(hand, s.Name); ok && limit > 0 {
			top.widen(v / limit)
		}
	}
	if len(names) == 0 {
		return ""
	}
	text := fmt.Sprintf("Throughput of %s was %s × the best peer's", render.List(names), peer)
	if top.low <= top.high {
		text += fmt.Sprintf(" and %s × that of the placement by hand", top)
	}
	return text + "."
}

// bestPeer is the peer with the highest throughput of a service.
func bestPeer(c experiment.Comparison, service string) (best float64, arm experiment.Arm, ok bool) {
	for _, p := range peers(c) {
		if v, known := ops(p, service); known && v > best {
			best, arm, ok = v, p, true
		}
	}
	return best, arm, ok
}

type span struct{ low, high float64 }

func newSpan() span { return span{math.Inf(1), math.Inf(-1)} }

func (s *span) widen(v float64) { s.low, s.high = min(s.low, v), max(s.high, v) }

func (s span) String() string {
	if times(s.low) == times(s.high) {
		return times(s.low)
	}
	return times(s.low) + " to " + times(s.high)
}

func targetSentence(targets []experiment.Target) string {
	var missed []string
	for _, t := range targets {
		if !t.Met {
			missed = append(missed, fmt.Sprintf("%s (%s, got %s)", t.Name, t.Want, got(t)))
		}
	}
	switch {
	case len(targets) == 0:
		return "No targets were judged."
	case len(missed) == 0 && len(targets) == 1:
		return "The only target was met."
	case len(missed) == 0:
		return fmt.Sprintf("All %d targets were met.", len(targets))
	}
	return fmt.Sprintf("%d of %s NOT MET: %s.", len(missed), render.Count(len(targets), "target"), render.List(missed))
}

// aheadSentences name the best peer in each figure in which it is ahead of homenode.
func aheadSentences(c experiment.Comparison, us experiment.Arm) []string {
	var out []string
	local, known := us.LocalAccessRatio.Get()
	for _, p := range peers(c) {
		if v, ok := p.LocalAccessRatio.Get(); ok && known && v > local {
			out = append(out, fmt.Sprintf("%s is ahead of homenode in local access ratio (%s against %s).", p.Title, render.Ratio(v), render.Ratio(local)))
		}
	}
	for _, s := range us.Services {
		v, ok := ops(us, s.Name)
		best, arm, known := bestPeer(c, s.Name)
		if !ok || !known || best <= v {
			continue
		}
		theirs, _ := arm.Service(s.Name)
		out = append(out, fmt.Sprintf("%s is ahead of homenode in throughput of %s (%s against %s, %s more; %s).",
			arm.Title, s.Name, figure(best), figure(v), render.Percent((best-v)/v), beyond(s.Spread, theirs.Spread)))
	}
	return out
}

// beyond says whether the repeats of two arms overlap. b is the higher.
func beyond(a, b experiment.Summary) string {
	switch {
	case a.N < 2 || b.N < 2:
		return "spread unknown"
	case b.Min > a.Max:
		return "every repeat of it above every one of homenode"
	}
	return "the repeats overlap"
}
