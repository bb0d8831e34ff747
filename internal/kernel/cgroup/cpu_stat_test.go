// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"errors"
	"testing"
	"time"

	"homenode/internal/kernel/unix"
)

func TestDecodeThrottling(t *testing.T) {
	for text, want := range map[string]Throttling{
		"usage_usec 7\nnr_periods 120\nnr_throttled 7\nthrottled_usec 70\nnr_bursts 0\n": {120, 7},
		"nr_periods 5\nnr_throttled 0":   {5, 0},
		"usage_usec 7\n":                 {},
		"x_nr_periods 9\nnr_periods 2\n": {2, 0},
		"":                               {},
	} {
		if got, err := ParseThrottling([]byte(text)); err != nil || got != want {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
	for _, bad := range []string{"nr_periods x\n", "nr_periods 3\nnr_throttled -1\n", "nr_periods \n"} {
		if got, err := ParseThrottling([]byte(bad)); !errors.Is(err, unix.ErrMalformed) || got != (Throttling{}) {
			t.Errorf("%q: %+v, %v", bad, got, err)
		}
	}
}

func TestDecodeCPUPressure(t *testing.T) {
	const text = "some avg10=1.00 avg60=0.00 avg300=0.00 total=51234\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=50333\n"
	if got, err := ParseCPUPressure([]byte(text)); err != nil || got != 51234*time.Microsecond {
		t.Errorf("%v, %v", got, err)
	}
	for _, bad := range []string{"", "some avg10=0.00\n", "full avg10=0.00 total=3\n", "some total=3x\n", "some  total=9999999999999999999\n"} {
		if got, err := ParseCPUPressure([]byte(bad)); !errors.Is(err, unix.ErrMalformed) || got != 0 {
			t.Errorf("%q: %v, %v", bad, got, err)
		}
	}
}
