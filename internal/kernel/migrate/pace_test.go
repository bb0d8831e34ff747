// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"math/rand/v2"
	"testing"
	"time"

	"homenode/internal/unit"
)

// TestPacer: time lost is caught up, within the rate overall and never at more than twice
// the rate.
func TestPacer(t *testing.T) {
	const rate = 100 * unit.MiB
	for seed := range uint64(50) {
		r := rand.New(rand.NewPCG(seed, 3))
		now := time.Duration(r.IntN(1000)) * time.Millisecond
		p := pacer{rate: rate, from: now}
		var total, burstBytes unit.Bytes
		burstFrom := now
		for i := range 500 {
			size := unit.Bytes(1+r.IntN(2000)) * 4096
			takes := time.Duration(r.IntN(5)) * time.Millisecond
			if i == 100 {
				now += time.Second // searching for pages
				burstFrom, burstBytes = now, 0
			}
			for w := p.wait(now, size, takes); w > 0; w = p.wait(now, size, takes) {
				now += min(w, sleepAtMost)
			}
			p.begin(now, size)
			if burstBytes += size; i >= 100 && burstBytes > 2*unit.Bytes(float64(rate)*(now-burstFrom).Seconds())+2*2000*4096 {
				t.Fatalf("seed %d: %v in %v after a break", seed, burstBytes, now-burstFrom)
			}
			now += takes
			total += size
			if r.IntN(10) == 0 {
				p.undo(size) // nothing of it moved
				total -= size
			}
		}
		if share := float64(total) / (float64(rate) * (now - p.from).Seconds()); share < 0.97 || share > 1.03 {
			t.Errorf("seed %d: %.3f of the rate", seed, share)
		}
	}
}

// TestPacerForgives: a minute lost is not caught up for a minute.
func TestPacerForgives(t *testing.T) {
	const rate = 100 * unit.MiB
	p := pacer{rate: rate}
	p.begin(0, unit.MiB)
	now, begun := time.Minute, time.Minute
	var moved unit.Bytes
	for now < begun+10*time.Second {
		for w := p.wait(now, unit.MiB, 0); w > 0; w = p.wait(now, unit.MiB, 0) {
			now += min(w, sleepAtMost)
		}
		p.begin(now, unit.MiB)
		moved += unit.MiB
	}
	if most := 11*rate + 2*unit.MiB; moved > most || moved < 10*rate {
		t.Errorf("%v in 10 s after a minute that was lost, want %v at most", moved, most)
	}
}
