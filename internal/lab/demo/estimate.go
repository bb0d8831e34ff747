// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"math"
	"time"
)

// estimator estimates how long the rest of a comparison takes on this host, from
// its runs so far. Times are the host's, since the start of the comparison.
//
//  1. The current run takes as long as its part so far suggests. The smaller that part is,
//     the more weight the estimate of a run (2) has.
//  2. A run takes the mean of the earlier runs, of which the newest count most, and of the
//     current run in proportion to its part so far. A busy host may double a run; arms
//     differ by less, and every round has each arm once.
type estimator struct {
	runs  int
	model float64 // model-seconds of a run

	at    int           // the current run
	begun time.Duration // when it began
	first time.Duration // when its first model-second began
	last  time.Duration // the newest step
	done  float64       // model-seconds at that step

	seconds, weight float64       // sums over complete runs, faded
	ends            time.Duration // time of complete runs after their last model-second
}

const (
	// fade is the weight of a run relative to the next. With a lower value the
	// estimate follows every arm; with a higher one it takes long to notice that
	// the host became busy.
	fade = 0.7
	// enough is the share of a run from which the run alone is informative.
	enough = 0.05
)

func newEstimator(runs int, model float64) *estimator {
	return &estimator{runs: runs, model: model}
}

func (e *estimator) begin(now time.Duration) {
	e.begun, e.first, e.last, e.done = now, now, now, 0
}

// step reports how many of its model-seconds the run has completed.
func (e *estimator) step(now time.Duration, done float64) {
	if done == 0 {
		e.first = now
	}
	e.last, e.done = now, done
}

// end returns the time of the run before its first model-second and after its last.
func (e *estimator) end(now time.Duration) (around time.Duration) {
	e.seconds = e.seconds*fade + (now - e.begun).Seconds()
	e.weight = e.weight*fade + 1
	e.ends += now - e.last
	e.at++
	around = e.first - e.begun + now - e.last
	e.begin(now)
	return around
}

// left is unknown until a part of the first run is known.
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

// carried is the extrapolated time of the current run, and how much of the run is
// known; 0 while that is too little.
func (e *estimator) carried() (seconds, share float64) {
	share = min(1, e.done/e.model)
	if share < enough {
		return 0, 0
	}
	return (e.first - e.begun + e.ending()).Seconds() + (e.last-e.first).Seconds()/share, share
}

// ending is the time of a run after its last model-second. Until a run is complete,
// it is assumed to be as long as the time before the first.
func (e *estimator) ending() time.Duration {
	if e.at == 0 {
		return e.first - e.begun
	}
	return e.ends / time.Duration(e.at)
}
