// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"os"
	"strconv"
	"time"
)

// mostSilent is the longest time without a beat: if one beat is left out because a round is
// just late, the next one must not come close to the timeout.
const mostSilent = 10 * time.Second

// watchdog is how often systemd is to hear of this process: a quarter of what it waits
// (sd_watchdog_enabled(3) says half or less), and no more seldom than mostSilent. 0: it
// does not ask.
func watchdog() time.Duration {
	usec, err := strconv.ParseInt(os.Getenv("WATCHDOG_USEC"), 10, 64)
	if pid := os.Getenv("WATCHDOG_PID"); err != nil || usec <= 0 || pid != "" && pid != strconv.Itoa(os.Getpid()) {
		return 0
	}
	return min(max(time.Duration(usec)*time.Microsecond/4, time.Microsecond), mostSilent)
}
