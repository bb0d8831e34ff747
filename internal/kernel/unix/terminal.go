// SPDX-License-Identifier: Apache-2.0

package unix

import (
	"os"

	sys "golang.org/x/sys/unix"
)

// TerminalWidth is how many columns the terminal has that a file is; false when
// it is none.
func TerminalWidth(f *os.File) (int, bool) {
	size, err := sys.IoctlGetWinsize(int(f.Fd()), sys.TIOCGWINSZ)
	if err != nil || size.Col == 0 {
		return 0, false
	}
	return int(size.Col), true
}
