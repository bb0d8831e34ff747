// SPDX-License-Identifier: Apache-2.0

//go:build amd64 || arm64 || ppc64le

package membench

// Instructions of a turn of spin, and of a call with no turn.
const (
	spinTurn = 2
	spinCall = 9
)

//go:noescape
func spin(turns int)
