// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"fmt"
	"math"

	"homenode/internal/experiment"
	"homenode/internal/unit"
)

// Targets for homenode: docs/decisions/0001. They were fixed before the first
// comparison; a change needs a record with all arms before and after.
const (
	wantLocal   = 0.95 // local access ratio of the bound services
	wantRemote  = 0.5  // their remote share relative to the best peer's
	wantPeers   = 1.10 // throughput relative to the best peer's
	wantCeiling = 0.95 // throughput relative to the placement by hand
	wantSpread  = 0.03 // (max − min) / median of a bound service's throughput
)

var peers = []string{ArmLinux, ArmBalancing, ArmNumad}

// judge compares homenode's arm with the others. A target that cannot be
// computed is not met.
func judge(m Mix, c experiment.Comparison) []experiment.Target {
	ours, ok := c.Arm(ArmHomenode)
	if !ok || !ours.Applicable {
		return nil
	}
	targets := []experiment.Target{localTarget(ours), remoteTarget(c, ours)}
	for _, w := range m.Workloads {
		switch w.Kind {
		case Sensitive:
			targets = append(targets, peerTarget(c, ours, w.Name), ceilingTarget(c, ours, w.Name), spreadTarget(c, w.Name))
		case Wide, Insensitive:
			targets = append(targets, harmTarget(c, ours, w.Name))
		}
	}
	return targets
}

func atLeast(name, want string, got unit.Opt[float64], limit float64, note string) experiment.Target {
	v, ok := got.Get()
	return experiment.Target{Name: name, Want: want, Got: got, Limit: limit, Met: ok && v >= limit, Note: note}
}

func atMost(name, want string, got unit.Opt[float64], limit float64, note string) experiment.Target {
	v, ok := got.Get()
	return experiment.Target{Name: name, Want: want, Got: got, Limit: limit, Met: ok && v <= limit, Note: note}
}

func localTarget(ours experiment.Arm) experiment.Target {
	return atLeast("local access ratio of the bound services", fmt.Sprintf("≥ %.2f", wantLocal), ours.LocalAccessRatio, wantLocal, "")
}

func remoteTarget(c experiment.Comparison, ours experiment.Arm) experiment.Target {
	best, name := math.Inf(1), ""
	for _, p := range peers {
		a, ok := c.Arm(p)
		if local, known := a.LocalAccessRatio.Get(); ok && a.Applicable && known && 1-local < best {
			best, name = 1-local, a.Title
		}
	}
	local, ok := ours.LocalAccessRatio.Get()
	got := unit.OptOf((1-local)/best, ok && name != "")
	return atMost("remote share against the best peer's", fmt.Sprintf("≤ %.2f ×", wantRemote), got, wantRemote, "best peer: "+name)
}

func ops(a experiment.Arm, service string) (float64, bool) {
	s, ok := a.Service(service)
	v, known := s.OpsPerModelS.Get()
	return v, ok && known && v > 0
}

func peerTarget(c experiment.Comparison, ours experiment.Arm, service string) experiment.Target {
	best, name := 0.0, ""
	for _, p := range peers {
		a, ok := c.Arm(p)
		if v, known := ops(a, service); ok && a.Applicable && known && v > best {
			best, name = v, a.Title
		}
	}
	v, ok := ops(ours, service)
	return atLeast(service+": throughput against the best peer", fmt.Sprintf("≥ %.2f ×", wantPeers),
		unit.OptOf(v/best, ok && best > 0), wantPeers, "best peer: "+name)
}

func ceilingTarget(c experiment.Comparison, ours experiment.Arm, service string) experiment.Target {
	a, _ := c.Arm(ArmByHand)
	ceiling, ok1 := ops(a, service)
	v, ok2 := ops(ours, service)
	return atLeast(service+": throughput against the placement by hand", fmt.Sprintf("≥ %.2f ×", wantCeiling),
		unit.OptOf(v/ceiling, ok1 && ok2), wantCeiling, "")
}

// spreadTarget is about the two arms in which the service is bound: the wider of
// their spreads. One repeat has no spread.
func spreadTarget(c experiment.Comparison, service string) experiment.Target {
	widest, note, known := 0.0, "", false
	for _, arm := range []string{ArmHomenode, ArmByHand} {
		a, ok := c.Arm(arm)
		s, found := a.Service(service)
		if !ok || !found {
			continue
		}
		if s.Spread.N < 2 {
			return atMost(service+": min to max of the repeats where bound", fmt.Sprintf("≤ %.2f", wantSpread), unit.None[float64](), wantSpread, "one repeat has no spread")
		}
		if v := s.Spread.RelativeSpread(); !known || v > widest {
			widest, note, known = v, "wider under: "+a.Title, true
		}
	}
	return atMost(service+": min to max of the repeats where bound", fmt.Sprintf("≤ %.2f", wantSpread), unit.OptOf(widest, known), wantSpread, note)
}

// harmTarget is for services that homenode does not bind: they must not be slower
// than under Linux alone by more than the noise, which is the larger relative
// spread of the two arms' repeats.
func harmTarget(c experiment.Comparison, ours experiment.Arm, service string) experiment.Target {
	linux, _ := c.Arm(ArmLinux)
	base, _ := linux.Service(service)
	s, _ := ours.Service(service)
	noise := max(base.Spread.RelativeSpread(), s.Spread.RelativeSpread())
	before, ok1 := ops(linux, service)
	v, ok2 := ops(ours, service)
	return atLeast(service+": operations against Linux alone", fmt.Sprintf("≥ 1 − noise (%.3f)", noise),
		unit.OptOf(v/before, ok1 && ok2), 1-noise, "noise: the larger spread of the two arms' repeats")
}
