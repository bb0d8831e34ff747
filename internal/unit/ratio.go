// SPDX-License-Identifier: Apache-2.0

package unit

import (
	"math"
	"strconv"
)

// Ratio is a share in [0,1]. Percent exist only where a person reads them.
type Ratio float64

// RatioOf returns part/whole. It is None when that is not a share: whole is not
// positive, part is negative, not a number, or larger than whole.
func RatioOf(part, whole float64) Opt[Ratio] {
	r := Ratio(part / whole)
	if !(whole > 0) || math.IsInf(whole, 0) || !r.Valid() {
		return None[Ratio]()
	}
	return Some(r)
}

// Valid reports whether r is in [0,1]; NaN is not.
func (r Ratio) Valid() bool { return r >= 0 && r <= 1 }

// String is for people: "57.8%".
func (r Ratio) String() string {
	return strconv.FormatFloat(float64(r)*100, 'f', 1, 64) + "%"
}
