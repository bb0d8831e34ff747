// SPDX-License-Identifier: Apache-2.0

//go:build !amd64 && !arm64 && !ppc64le

package membench

// Approximate instructions of a turn of spin, and of a call with no turn.
const (
	spinTurn = 2
	spinCall = 9
)

// The counter is the caller's own: a shared one would be a line that bounces between
// CPUs. The compiler keeps a loop that does nothing.
//
//go:noinline
//go:nosplit
func spin(turns int) {
	for ; turns > 0; turns-- {
	}
}
