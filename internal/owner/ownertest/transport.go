// SPDX-License-Identifier: Apache-2.0

package ownertest

import (
	"fmt"
	"net/http"
	"os"
)

// Denied is the transport to a socket that may not be opened; root may open all.
type Denied struct{}

// RoundTrip fails.
func (Denied) RoundTrip(*http.Request) (*http.Response, error) {
	return nil, fmt.Errorf("dial: %w", os.ErrPermission)
}

// Crashing stops a homenode dead at the Stop-th operation, before or after it.
type Crashing struct {
	http.RoundTripper
	Stop  int
	ticks int
}

type crash struct{}

func (c *Crashing) tick() {
	if c.ticks++; c.ticks == c.Stop {
		panic(crash{})
	}
}

// RoundTrip is two operations.
func (c *Crashing) RoundTrip(r *http.Request) (*http.Response, error) {
	c.tick()
	resp, err := c.RoundTripper.RoundTrip(r)
	c.tick()
	return resp, err
}

// Crashed reports whether f was stopped.
func Crashed(f func()) (yes bool) {
	defer func() {
		if r := recover(); r != nil {
			if _, yes = r.(crash); !yes {
				panic(r)
			}
		}
	}()
	f()
	return false
}
