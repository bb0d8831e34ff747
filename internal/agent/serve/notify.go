// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"time"
)

// notify tells systemd how the service is, e.g. "READY=1": sd_notify(3) by hand, which is one
// datagram. Without a socket of systemd's it does nothing.
func notify(state ...string) error {
	path := os.Getenv("NOTIFY_SOCKET")
	if path == "" {
		return nil
	}
	if rest, ok := strings.CutPrefix(path, "@"); ok { // an abstract socket
		path = "\x00" + rest
	}
	c, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		return fmt.Errorf("notify systemd: %w", err)
	}
	defer c.Close()
	if _, err := c.Write([]byte(strings.Join(state, "\n"))); err != nil {
		return fmt.Errorf("notify systemd: %w", err)
	}
	return nil
}

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
