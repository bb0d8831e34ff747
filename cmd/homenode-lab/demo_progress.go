// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"
	"time"

	"homenode/internal/cli"
	"homenode/internal/lab/demo"
)

// showDemo shows the progress of a comparison.
func showDemo(l *cli.StatusLine, p demo.Progress) {
	stage := fmt.Sprint(p.Done)
	for _, run := range p.Now {
		stage += run.Step.Stage
	}
	l.Show(stage, demoText(p))
}

// demoText: 3 of 10 runs · about 4 min left · numad warming up 6 of 18 model-s, local 0.52.
func demoText(p demo.Progress) string {
	parts := []string{fmt.Sprintf("%d of %d runs", p.Done, p.All)}
	if left, ok := p.Left.Get(); ok {
		parts = append(parts, leftText(left))
	}
	for _, run := range p.Now {
		parts = append(parts, run.Arm+" "+run.Step.String())
	}
	if len(p.Now) == 0 && p.Done == 0 {
		parts = append(parts, "booting the lab")
	}
	return strings.Join(parts, " · ")
}

func leftText(left time.Duration) string {
	if left < time.Minute {
		return "less than a minute left"
	}
	return fmt.Sprintf("about %d min left", int(left.Round(time.Minute)/time.Minute))
}
