// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"os"
	"strconv"
	"testing"
	"time"
)

func TestWatchdog(t *testing.T) {
	for _, c := range []struct {
		usec, pid string
		want      time.Duration
	}{{"", "", 0}, {"30000000", "", 7500 * time.Millisecond}, {"600000000", "", 10 * time.Second}, {"1", "", time.Microsecond}, {"2000000", strconv.Itoa(os.Getpid()), 500 * time.Millisecond}, {"2000000", "1", 0}, {"x", "", 0}, {"-5", "", 0}} {
		t.Setenv("WATCHDOG_USEC", c.usec)
		t.Setenv("WATCHDOG_PID", c.pid)
		if got := watchdog(); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}
