// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"strings"
	"testing"

	"homenode/internal/exit"
	"homenode/internal/sim/rollouts"
)

// The command says what came of each effect, and its exit code whether the targets are met.
func TestSimRollouts(t *testing.T) {
	code, out, _ := runWith("sim", "rollouts", "--rollouts", "10", "--effect=-0.2", "--effect", "0.1")
	if code != exit.Done || !strings.Contains(out, "met: an effect of -20.0%, completed: 100.0%") || !strings.Contains(out, "harm 10") || !strings.Contains(out, "Every figure is modelled") {
		t.Errorf("%d\n%s", code, out)
	}
	code, out, _ = runWith("sim", "rollouts", "--rollouts", "3", "--effect=-0.1", "--replicas", "12", "--noise", "2", "-o", "json")
	var r rollouts.Trials
	if err := json.Unmarshal([]byte(out), &r); err != nil || code != exit.Failed || len(r.Targets) != 1 || r.Targets[0].Met || r.How.String() != "modelled" {
		t.Errorf("%d, %v\n%s", code, err, out)
	}
	for _, bad := range [][]string{{"--rollouts", "0"}, {"--replicas", "3"}, {"--per-host", "90"}, {"--noise", "-1"}, {"--noise", "NaN"}, {"--effect", "NaN"}, {"--effect=-1"}, {"-o", "xml"}, {"x"}} {
		if code, _, said := runWith(append([]string{"sim", "rollouts"}, bad...)...); code != exit.Bad || said == "" {
			t.Errorf("%q: %d, %s", bad, code, said)
		}
	}
}
