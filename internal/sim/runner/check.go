// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"fmt"
	"math"
	"time"
)

// How is the source of a result's figures. There is no other.
const How = "modelled"

// Start is the start of every world, a Monday: the hour of the day matters to loads with a
// daily curve.
var Start = time.Date(2026, time.January, 5, 0, 0, 0, 0, time.UTC)

// CheckForm says what is invalid in a result's head.
func CheckForm(schema, newest int, how string) error {
	if schema < 1 || schema > newest {
		return fmt.Errorf("schema %d: want 1 to %d", schema, newest)
	}
	if how != How {
		return fmt.Errorf("how is %.80q: want %q", how, How)
	}
	return nil
}

// most is larger than every figure of a result; larger numbers overflow where they are
// divided and drawn.
const most = 1e18

// Check goes over the figures of a result, and keeps the first invalid one.
type Check struct{ Err error }

func (c *Check) want(what string, ok bool, v float64, want string) {
	if !ok && c.Err == nil {
		c.Err = fmt.Errorf("%.80s: %v: want %s", what, v, want)
	}
}

// Positive requires figures that are finite and not negative.
func (c *Check) Positive(what string, all ...float64) {
	for _, v := range all {
		c.want(what, v >= 0 && v <= most && !math.IsInf(v, 0), v, "a number that is not negative, 1e18 at most")
	}
}

// Share requires figures from 0 to 1.
func (c *Check) Share(what string, all ...float64) {
	for _, v := range all {
		c.want(what, v >= 0 && v <= 1, v, "0 to 1")
	}
}
