// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"time"

	"homenode/internal/cli"
	"homenode/internal/lab/demo"
)

// showDemo shows the progress of a comparison.
func showDemo(l *cli.StatusLine, p demo.Progress) {
	l.Show(fmt.Sprint(p.Done, p.Step.Stage), demoText(p))
}

// demoText: 3 of 10 runs · numad warming up 6 of 18 model-s, local 0.52 · about 4 min left.
func demoText(p demo.Progress) string {
	text := fmt.Sprintf("%d of %d runs · ", p.Done, p.All)
	if p.Arm != "" {
		text += p.Arm + " "
	}
	text += p.Step.String()
	if left, ok := p.Left.Get(); ok {
		text += " · " + leftText(left)
	}
	return text
}

func leftText(left time.Duration) string {
	if left < time.Minute {
		return "less than a minute left"
	}
	return fmt.Sprintf("about %d min left", int(left.Round(time.Minute)/time.Minute))
}
