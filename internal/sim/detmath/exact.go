// SPDX-License-Identifier: Apache-2.0

package detmath

import "math"

const (
	ln2High = 6.93147180369123816490e-01 // its low 32 bits are 0: k × ln2High is exact for |k| < 2^20
	ln2Low  = 1.90821492927058770002e-10
)

// steps is how many values of 2^(j/steps) Exp looks up; a power of two.
const steps = 64

// roots are 2^(j/steps), computed the slow way.
var roots = func() (all [steps]float64) {
	for j := range all {
		x := float64(j) * (ln2High / steps)
		x += float64(j) * (ln2Low / steps)
		sum := 1.0
		for i := 18; i > 0; i-- {
			sum = 1 + x*sum/float64(i)
		}
		all[j] = sum
	}
	return all
}()

// Exp is e to the x, with a relative error of 1e-15. Below -700 it is 0; above 700 it is
// the value at 700.
//
//  1. x = (k + j/64) ln 2 + r, |r| ≤ ln 2 / 128.
//  2. e^r is its Taylor series, 6 terms: the rest is below 2^-54.
//  3. Times 2^(j/64), from a table, and 2^k, which is exact.
func Exp(x float64) float64 {
	if x < -700 {
		return 0
	}
	x = min(x, 700)
	n := math.Round(x * (steps / math.Ln2)) // 1
	r := (x - n*(ln2High/steps)) - n*(ln2Low/steps)
	sum := 1 + r*(1.0/5) // 2
	sum = 1 + r*(1.0/4)*sum
	sum = 1 + r*(1.0/3)*sum
	sum = 1 + r*(1.0/2)*sum
	sum = 1 + r*sum
	at := int64(n)
	k := uint64(at>>6) + 1023 // 3
	return roots[at&(steps-1)] * sum * math.Float64frombits(k<<52)
}

// Log is the natural logarithm, with an error of 1e-15 of the larger of the result and 1.
// For x ≤ 0 it is the logarithm of the smallest positive number.
//
//  1. x = m 2^k, m in [√½, √2).
//  2. ln m = 2 artanh s, s = (m − 1)/(m + 1), |s| ≤ 0.172: a series in s².
func Log(x float64) float64 {
	m, k := math.Frexp(max(x, math.SmallestNonzeroFloat64)) // 1
	if m < math.Sqrt2/2 {
		m, k = 2*m, k-1
	}
	s := (m - 1) / (m + 1) // 2
	s2 := s * s
	sum := 0.0
	for i := 23; i > 0; i -= 2 {
		sum = sum*s2 + 1/float64(i)
	}
	return float64(k)*ln2High + (2*s*sum + float64(k)*ln2Low)
}

// Pow is x to the y, for x ≥ 0. 0 to any y is 0.
func Pow(x, y float64) float64 {
	if x <= 0 {
		return 0
	}
	return Exp(y * Log(x))
}

// Sum adds in the order of the list, as the last bits depend on it.
func Sum(list []float64) (sum float64) {
	for _, x := range list {
		sum += x
	}
	return sum
}
