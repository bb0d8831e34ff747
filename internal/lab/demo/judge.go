// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"fmt"
	"math"
	"strings"

	"homenode/internal/trial"
	"homenode/internal/unit"
)

func splitLines(text string) []string {
	return strings.Split(strings.TrimRight(text, "\n"), "\n")
}

// What homenode is held to: docs/decisions/0001. Fixed before the first
// comparison; a change needs a record with all arms before and after.
const (
	wantLocal   = 0.95 // local access ratio of the bound services
	wantRemote  = 0.5  // their remote share against the best peer's
	wantPeers   = 1.10 // throughput against the best of the peers
	wantCeiling = 0.95 // throughput against the placement by hand
)

var peers = []string{ArmLinux, ArmBalancing, ArmNumad}

// judge holds homenode's arm against the others. A target that cannot be
// computed is not met.
func judge(m Mix, c trial.Comparison) []trial.Target {
	ours, ok := c.Arm(ArmHomenode)
	if !ok || !ours.Applicable {
		return nil
	}
	targets := []trial.Target{localTarget(ours), remoteTarget(c, ours)}
	for _, w := range m.Workloads {
		switch w.Kind {
		case Sensitive:
			targets = append(targets, peerTarget(c, ours, w.Name), ceilingTarget(c, ours, w.Name))
		case Insensitive:
			targets = append(targets, spinnerTarget(c, ours, w.Name))
		}
	}
	return targets
}

func atLeast(name, want string, got unit.Opt[float64], limit float64, note string) trial.Target {
	v, ok := got.Get()
	return trial.Target{Name: name, Want: want, Got: got, Limit: limit, Met: ok && v >= limit, Note: note}
}

func localTarget(ours trial.Arm) trial.Target {
	return atLeast("local access ratio of the bound services", fmt.Sprintf("≥ %.2f", wantLocal), ours.LocalAccessRatio, wantLocal, "")
}

func remoteTarget(c trial.Comparison, ours trial.Arm) trial.Target {
	best, name := math.Inf(1), ""
	for _, p := range peers {
		a, ok := c.Arm(p)
		if local, known := a.LocalAccessRatio.Get(); ok && a.Applicable && known && 1-local < best {
			best, name = 1-local, a.Title
		}
	}
	local, ok := ours.LocalAccessRatio.Get()
	got := unit.OptOf((1-local)/best, ok && name != "")
	v, known := got.Get()
	return trial.Target{
		Name: "remote share against the best peer's", Want: fmt.Sprintf("≤ %.2f ×", wantRemote), Got: got, Limit: wantRemote,
		Met: known && v <= wantRemote, Note: "best peer: " + name,
	}
}

func ops(a trial.Arm, service string) (float64, bool) {
	s, ok := a.Service(service)
	v, known := s.OpsPerModelS.Get()
	return v, ok && known && v > 0
}

func peerTarget(c trial.Comparison, ours trial.Arm, service string) trial.Target {
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

func ceilingTarget(c trial.Comparison, ours trial.Arm, service string) trial.Target {
	a, _ := c.Arm(ArmByHand)
	ceiling, ok1 := ops(a, service)
	v, ok2 := ops(ours, service)
	return atLeast(service+": throughput against the placement by hand", fmt.Sprintf("≥ %.2f ×", wantCeiling),
		unit.OptOf(v/ceiling, ok1 && ok2), wantCeiling, "")
}

// spinnerTarget: not lower than Linux alone by more than the noise, which is the
// larger relative spread of the two arms' repeats.
func spinnerTarget(c trial.Comparison, ours trial.Arm, service string) trial.Target {
	linux, _ := c.Arm(ArmLinux)
	base, _ := linux.Service(service)
	s, _ := ours.Service(service)
	noise := max(base.Spread.RelativeSpread(), s.Spread.RelativeSpread())
	before, ok1 := ops(linux, service)
	v, ok2 := ops(ours, service)
	return atLeast(service+": operations against Linux alone", fmt.Sprintf("≥ 1 − noise (%.3f)", noise),
		unit.OptOf(v/before, ok1 && ok2), 1-noise, "noise: the larger spread of the two arms' repeats")
}
