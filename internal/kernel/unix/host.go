// SPDX-License-Identifier: Apache-2.0

package unix

import "net"

// ThisHost says whether a name or an address, as a URL has it without its port, is this host's own:
// localhost, or an address of loopback.
func ThisHost(name string) bool {
	ip := net.ParseIP(name)
	return name == "localhost" || ip != nil && ip.IsLoopback()
}
