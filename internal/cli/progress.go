// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// BarWidth is the columns of a bar that leaves room for figures beside it.
const BarWidth = 30

// ProgressLine shows how far it is; on a terminal it rewrites one line.
func ProgressLine(w io.Writer) func(done, all int, text string) {
	start := time.Now()
	tty := IsTerminal(w)
	last := ""
	return func(done, all int, text string) {
		eta := ""
		if elapsed := time.Since(start); done > 0 {
			eta = fmt.Sprintf(", about %s left", (elapsed / time.Duration(done) * time.Duration(all-done)).Round(10*time.Second))
		}
		line := fmt.Sprintf("[%d/%d %s%s] %s", done, all, time.Since(start).Round(time.Second), eta, text)
		if tty {
			fmt.Fprintf(w, "\r\x1b[K%.100s", line)
			return
		}
		if head, _, _ := strings.Cut(text, ","); head+fmt.Sprint(done) != last || strings.Contains(text, "measured") {
			fmt.Fprintln(w, line)
			last = head + fmt.Sprint(done)
		}
	}
}
