// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"homenode/internal/lab"
)

// lane is a guest and its runs of a comparison, one after the other. One guest does not
// use two CPUs of a host: its CPUs wait for each other's clocks.
type lane struct {
	c     *comparer
	guest guest
	runs  []int // in comparer.runs
	at    int   // the current one
	now   *Running
	eta   *estimator
}

// all boots the guest and does all runs.
func (l *lane) all(ctx context.Context) error {
	g, err := l.c.o.boot(ctx)
	if err != nil {
		return err
	}
	defer g.Close()
	l.guest = g
	if err := g.Put(ctx, agentConfig, 0o644, l.c.o.Agent); err != nil {
		return err
	}
	for l.at = range l.runs {
		if err := l.run(ctx); err != nil {
			return err
		}
	}
	return nil
}

// run runs one arm once.
func (l *lane) run(ctx context.Context) error {
	run := l.c.runs[l.runs[l.at]]
	begin := time.Now()
	l.timed(func(now time.Duration) { l.eta.begin(now) })
	r, err := l.once(ctx, l.c.o.Arms[run.Arm], run.Repeat)
	if err != nil {
		return err
	}
	l.timed(func(now time.Duration) { r.HostAround = l.eta.end(now).Seconds() })
	r.HostSeconds = time.Since(begin).Seconds()
	l.c.keep(l, r)
	return nil
}

// timed changes the estimate, which other guests' progress reads.
func (l *lane) timed(change func(now time.Duration)) {
	l.c.mu.Lock()
	defer l.c.mu.Unlock()
	change(time.Since(l.c.start))
}

func (l *lane) once(ctx context.Context, arm string, repeat int) (RunResult, error) {
	p := l.c.plan
	p.Arm, p.Repeat = arm, repeat
	data, err := json.Marshal(p)
	if err != nil {
		return RunResult{}, err
	}
	if err := l.guest.Put(ctx, planFile, 0o644, data); err != nil {
		return RunResult{}, err
	}
	r, err := l.guest.RunLines(ctx, l.line, "homenode-lab", "arm", planFile, resultFile)
	if err != nil {
		return RunResult{}, err
	}
	if r.Exit != 0 {
		return RunResult{}, fmt.Errorf("run arm %s, repeat %d: %s", arm, repeat+1, lastLine(r))
	}
	data, err = l.guest.Fetch(ctx, resultFile)
	if err != nil {
		return RunResult{}, err
	}
	var result RunResult
	if err := json.Unmarshal(data, &result); err != nil {
		return RunResult{}, fmt.Errorf("read result of arm %s: %w", arm, err)
	}
	return result, nil
}

// line handles a line that the guest's side of a run writes to stderr.
func (l *lane) line(text string) {
	s, ok := parseStep(text)
	if !ok {
		return // an error, which the end of the run reports
	}
	if s.Stage != StageLoad && s.Stage != StageBoot {
		l.timed(func(now time.Duration) { l.eta.step(now, s.modelSeconds(l.c.o.Mix)) })
	}
	l.c.say(l, s)
}

// lastLine is the last message of the guest's side of a run, apart from its
// steps.
func lastLine(r lab.Result) string {
	last := fmt.Sprintf("it ended with code %d and printed nothing", r.Exit)
	for line := range strings.Lines(r.Stderr) {
		if _, ok := parseStep(line); !ok && strings.TrimSpace(line) != "" {
			last = strings.TrimSpace(line)
		}
	}
	return last
}
