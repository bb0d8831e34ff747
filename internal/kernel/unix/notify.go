// SPDX-License-Identifier: Apache-2.0

package unix

import (
	"fmt"
	"net"
	"os"
	"strings"
)

// Notify tells systemd how the service is, e.g. "READY=1": sd_notify(3) by hand, which is one
// datagram. Without a socket of systemd's it does nothing.
func Notify(state ...string) error {
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
