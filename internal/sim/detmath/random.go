// SPDX-License-Identifier: Apache-2.0

package detmath

import "math"

// Random is a stream of random numbers: SplitMix64 (Steele, Lea, Flood: Fast splittable
// pseudorandom number generators, OOPSLA 2014). It is a value: a copy continues
// independently. Streams with different keys are independent, so one more workload does not
// change the numbers of another.
type Random struct{ state uint64 }

// NewRandom is the stream of a seed and any number of keys.
func NewRandom(seed uint64, keys ...string) Random {
	r := Random{mix(seed)}
	for _, key := range keys {
		for i := range len(key) {
			r.state = mix(r.state ^ uint64(key[i]))
		}
		r.state = mix(r.state ^ uint64(len(key))<<32)
	}
	return r
}

// Uint64 is the next 64 bits.
func (r *Random) Uint64() uint64 {
	r.state += 0x9e3779b97f4a7c15
	return mix(r.state)
}

// Float is in [0, 1), with 53 bits.
func (r *Random) Float() float64 { return float64(r.Uint64()>>11) / (1 << 53) }

// Normal has mean 0 and deviation 1: Marsaglia's polar method.
func (r *Random) Normal() float64 {
	for {
		u, v := 2*r.Float()-1, 2*r.Float()-1
		s := u*u + v*v
		if s > 0 && s < 1 {
			return u * math.Sqrt(-2*Log(s)/s)
		}
	}
}

// Exponential has mean 1.
func (r *Random) Exponential() float64 { return -Log(1 - r.Float()) }

// Below is in 0 … n-1; n > 0. Its bias is below n / 2^64.
func (r *Random) Below(n int) int { return int(r.Uint64() % uint64(n)) }

func mix(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}
