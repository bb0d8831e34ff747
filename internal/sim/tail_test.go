// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"math"
	"testing"
)

// One kind of requests, however often it is added, is exact. Of two kinds, the percentile
// is where one of a hundred of all requests is beyond.
func TestTail(t *testing.T) {
	var one tail
	if one.p99() != 0 {
		t.Errorf("of nothing: %v", one.p99())
	}
	for range 1000 {
		one.addRequests(3, 0.002, 0.01)
	}
	near(t, "one kind", one.p99(), 0.002+0.01*math.Log(100), 1e-6)
	near(t, "all alike", func() float64 { var x tail; x.addRequests(5, 0.3, 0); return x.p99() }(), 0.3, 1e-6)
	var two tail
	two.addRequests(99.5, 0, 0.001)
	two.addRequests(0.5, 1, 1e-6)
	near(t, "few slow ones", two.p99(), 0.001*math.Log(99.5/0.5), 1e-6)
	two.addRequests(2, 1, 1e-6)
	near(t, "more slow ones", two.p99(), 1, 1e-4)
	// The day's P99 is not its worst minute's.
	var day tail
	for range 1439 {
		day.addRequests(1000, 0, 0.001)
	}
	day.addRequests(1000, 0, 0.1)
	if p := day.p99(); p < 0.0046 || p > 0.006 {
		t.Errorf("a day with one bad minute: %v", p)
	}
	// Within a bin the mean stands for all: a factor of 1.4 in scale is some per cent.
	var bin tail
	want := 0.0
	bin.addRequests(1, 0, 1.0)
	bin.addRequests(1, 0, 1.35)
	for want = 4; math.Exp(-want)+math.Exp(-want/1.35) > 0.02; want += 1e-4 {
	}
	near(t, "two scales in a bin", bin.p99(), want, 0.04)
}
