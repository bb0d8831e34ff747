// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"math"
	"time"
)

// estimator says how long the rest of a comparison takes on this host, from what
// its runs took so far. Times are the host's, since the comparison began.
//
//  1. The run that goes on: what it took so far, carried on. The less of it there
//     is, the more counts what a run takes (2).
//  2. A run takes the mean of those before it, the newest of which count most, and
//     the present one by how much of it there is: hosts become busy, which may
//     double a run; arms differ by less, and every round has each once.
type estimator struct {
	runs  int
	model float64 // model-seconds of a run

	at    int           // the run that goes on
	begun time.Duration // when it began
	first time.Duration // when its first model-second began
	last  time.Duration // the newest step
	done  float64       // model-seconds at that step

	seconds, weight float64       // of complete runs, faded
	ends            time.Duration // of complete runs, after their last model-second
}

const (
	// fade is what a run counts against the next: with less the estimate follows
	// every arm, with more it takes long to see that the host became busy.
	fade = 0.7
	// enough is the share of a run from which it says something by itself.
	enough = 0.05
)

func newEstimator(runs int, model float64) *estimator {
	return &estimator{runs: runs, model: model}
}

func (e *estimator) begin(now time.Duration) {
	e.begun, e.first, e.last, e.done = now, now, now, 0
}

// step says that the run has that many of its model-seconds behind it.
func (e *estimator) step(now time.Duration, done float64) {
	if done == 0 {
		e.first = now
	}
	e.last, e.done = now, done
}

// end returns what of the run was before its first model-second and after its last.
func (e *estimator) end(now time.Duration) (around time.Duration) {
	e.seconds = e.seconds*fade + (now - e.begun).Seconds()
	e.weight = e.weight*fade + 1
	e.ends += now - e.last
	e.at++
	around = e.first - e.begun + now - e.last
	e.begin(now)
	return around
}

// left is unknown until the first run has something to judge by.
func (e *estimator) left(now time.Duration) (time.Duration, bool) {
	carried, share := e.carried()
	weight := e.weight*math.Pow(fade, share) + share
	if e.at >= e.runs || weight == 0 {
		return 0, e.at >= e.runs
	}
	mean := (e.seconds*math.Pow(fade, share) + carried*share) / weight // 2
	present := share*carried + (1-share)*mean                          // 1
	left := max(0, present-(now-e.begun).Seconds()) + mean*float64(e.runs-e.at-1)
	return time.Duration(left * float64(time.Second)), true
}

// carried is what the run that goes on takes if it goes on so, and how much of it
// there is; 0 as long as that is too little.
func (e *estimator) carried() (seconds, share float64) {
	share = min(1, e.done/e.model)
	if share < enough {
		return 0, 0
	}
	return (e.first - e.begun + e.ending()).Seconds() + (e.last-e.first).Seconds()/share, share
}

// ending is the part of a run after its last model-second: as long as what is before
// the first, until a run is complete.
func (e *estimator) ending() time.Duration {
	if e.at == 0 {
		return e.first - e.begun
	}
	return e.ends / time.Duration(e.at)
}
