// SPDX-License-Identifier: Apache-2.0

package host

import (
	"testing"
	"time"

	"homenode/internal/bench"
	"homenode/internal/profile"
)

func TestBarLine(t *testing.T) {
	l := barLine(bench.Progress{Part: profile.Loaded, Done: 120, Total: 240, Elapsed: 63 * time.Second, Remaining: 130 * time.Second}).String()
	if want := "loaded-latency ###############...............  120/240  1m3s, about 2m10s left"; l != want {
		t.Errorf("%q, want %q", l, want)
	}
	_ = barLine(bench.Progress{}).String()
}
