// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"math"
	"math/bits"

	"homenode/internal/sim/detmath"
)

// tail has the latencies of many requests, for their 99th percentile: a mixture of shifted
// exponentials, in bins by their own 99th percentile, two per octave. A bin keeps means, so
// it is exact where all requests in it are alike.
type tail struct {
	filled uint64 // bit i: bins[i] is not empty
	bins   [tailBins]tailBin
}

type tailBin struct{ count, least, scale float64 } // sums of count × them

const (
	tailBins = 48
	// lowest is the exponent of the first bin, 2^-16 s; the last bin begins at 2^8 s.
	lowest = -16
)

// ln100 is the 99th percentile of an exponential of mean 1.
var ln100 = detmath.Log(100)

// addRequests adds count requests with a least latency, and an exponential part of this scale.
// least may be negative, by rounding or where they vary more than an exponential.
func (t *tail) addRequests(count, least, scale float64) {
	m, e := math.Frexp(max(least+scale*ln100, math.SmallestNonzeroFloat64))
	i := 2 * (e - lowest)
	if m >= math.Sqrt2/2 {
		i++
	}
	i = min(max(i, 0), tailBins-1)
	b := &t.bins[i]
	if t.filled&(1<<i) == 0 {
		t.filled |= 1 << i
		*b = tailBin{}
	}
	b.count += count
	b.least += count * least
	b.scale += count * scale
}

// p99 is the latency that one of a hundred exceeds; 0 without requests.
func (t *tail) p99() float64 {
	all, low, high := 0.0, math.Inf(1), 0.0
	for left := t.filled; left != 0; left &= left - 1 {
		b := &t.bins[bits.TrailingZeros64(left)]
		all += b.count
		at := (b.least + b.scale*ln100) / b.count
		low, high = min(low, at), max(high, at)
	}
	if all == 0 {
		return 0
	}
	for high-low > 1e-6*high {
		if middle := (low + high) / 2; t.beyond(middle) > all/100 {
			low = middle
		} else {
			high = middle
		}
	}
	return high
}

// beyond is how many take longer.
func (t *tail) beyond(latency float64) (sum float64) {
	for left := t.filled; left != 0; left &= left - 1 {
		b := &t.bins[bits.TrailingZeros64(left)]
		part := 1.0
		if over := latency*b.count - b.least; over > 0 {
			part = detmath.Exp(-over / max(b.scale, 1e-300))
		}
		sum += b.count * part
	}
	return sum
}
