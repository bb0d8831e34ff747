// SPDX-License-Identifier: Apache-2.0

//go:build !amd64

package probe

// Instructions of a turn of spin, and of a call with no turn: about.
const (
	spinTurn = 3
	spinCall = 9
)

var spun int

//go:noinline
//go:nosplit
func spin(turns int) {
	for spun = turns; spun > 0; spun-- {
	}
}
