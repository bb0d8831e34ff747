// SPDX-License-Identifier: Apache-2.0

package unix

import "testing"

// A name that only looks like an address of this host is another host's.
func TestThisHost(t *testing.T) {
	for name, want := range map[string]bool{
		"localhost": true, "127.0.0.1": true, "127.1.2.3": true, "::1": true, "::ffff:127.0.0.1": true,
		"": false, "127.evil.example": false, "127.0.0.1.example": false, "localhost.example": false, "192.0.2.1": false, "0.0.0.0": false, "::": false,
	} {
		if ThisHost(name) != want {
			t.Errorf("%q: %t", name, !want)
		}
	}
}
