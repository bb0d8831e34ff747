// SPDX-License-Identifier: Apache-2.0

package rollouts

import (
	"os"
	"strconv"
	"testing"

	"homenode/internal/rollout"
)

// many is how many rollouts of each effect are tried: 200 in 'make test-full'.
func many(t *testing.T) int {
	n, err := strconv.Atoi(os.Getenv("HOMENODE_ROLLOUTS"))
	if err != nil {
		return 30
	}
	return n
}

// A regression is rolled back before half of the replicas, nothing is seldom called a gain, and a
// gain is completed.
func TestRollouts(t *testing.T) {
	trials, err := TryAll(t.Context(), Usual(), rollout.Usual("shop", nil), []float64{0.03, 0, -0.10}, many(t), 1, func(int, int) {})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range trials.Results {
		t.Logf("%+v", r)
	}
	for _, x := range trials.Targets {
		if !x.Met {
			t.Errorf("%+v", x)
		}
	}
	if len(trials.Targets) != 3 || trials.Results[0].CalledGain > 0 {
		t.Errorf("%+v", trials)
	}
	for _, bad := range []Setting{{}, {Replicas: 12, PerHost: 3}, {Replicas: 12, PerHost: 1, Noise: -1}} {
		if bad.Check() == nil {
			t.Errorf("%+v is taken", bad)
		}
	}
}
