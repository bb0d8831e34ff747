// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
)

// steppedConfig has longer rounds, calm ones too.
var steppedConfig = strings.Replace(killConfig, "period: 100ms", "period: 300ms\ncalm_period: 300ms", 1)

// stepClock is settimeofday: the wall clock jumps by %d seconds.
const stepClock = `date -s @$(($(date +%%s) + %d)) >/dev/null`

// clockSteps are in seconds. Their sum is not 0: what only goes wrong while the clock is
// ahead, or behind, has time to.
var clockSteps = []int{3 * 3600, -5 * 3600, 26 * 3600, -48 * 3600, 1, -1, 40 * 365 * 86400, -30 * 365 * 86400}

// stepsWhileBinding step the clock to and fro while the agent binds, until a file appears.
const stepsWhileBinding = `n=0; while [ ! -e /tmp/kill-stepped ]; do
	n=$((n + 1)); by=$((n * 3600)); [ $((n % 2)) = 0 ] && by=-$by
	date -s @$(($(date +%s) + by)) >/dev/null; echo $n > /tmp/kill-steps; sleep 0.2
done`

// steppedStatus is the part of `homenode status -o json` that is checked.
type steppedStatus struct {
	Rounds uint64
	Window struct {
		At       time.Time     `json:"at"`
		Length   time.Duration `json:"length_ns"`
		Problems []string      `json:"problems"`
	} `json:"window"`
	Workloads []struct {
		ID, Stage string
	} `json:"workloads"`
}

func (s steppedStatus) bound() (n int) {
	for _, w := range s.Workloads {
		if w.Stage == "bound" {
			n++
		}
	}
	return n
}

func steppedNow(t *testing.T, g *Guest) (s steppedStatus) {
	t.Helper()
	if out := mustRun(t, g, "sh", "-c", "homenode status -o json || true"); strings.TrimSpace(out) != "" {
		if err := json.Unmarshal([]byte(out), &s); err != nil {
			t.Fatalf("status: %v\n%.500s", err, out)
		}
	}
	return s
}

// The wall clock is stepped by seconds, hours and decades, forwards and backwards, while the
// agent binds and while its bindings are in force. Its rounds go on, no window has a length
// that no time had, every binding stays, and its end puts everything back.
func TestLabClockSteps(t *testing.T) {
	t.Parallel()
	onlyFull(t)
	g := guest(t, "two", "v2")
	base := cgroupBase("v2")
	mustRun(t, g, "sh", "-c", "echo $(date +%s) $(cut -d. -f1 /proc/uptime) > /run/stepped-from")
	defer mustRun(t, g, "sh", "-c", `read at up < /run/stepped-from; date -s @$((at + $(cut -d. -f1 /proc/uptime) - up)) >/dev/null; rm /run/stepped-from`)
	toKill(t, g, base, steppedConfig, homeB)
	before := mustRun(t, g, "sh", "-c", fmt.Sprintf(snapshotKill, base))
	mustRun(t, g, "sh", "-c", "("+stepsWhileBinding+") </dev/null >/dev/null 2>&1 & homenode-agent agent --config /etc/kill.yaml </dev/null >/dev/null 2>/tmp/kill-agent.log &")
	defer func() {
		if t.Failed() {
			t.Logf("agent: %s", mustRun(t, g, "sh", "-c", "tail -n 60 /tmp/kill-agent.log; homenode status; homenode why a; true"))
		}
	}()
	waitFor(t, g, "both bound while the clock jumps", func() bool { return steppedNow(t, g).bound() == 2 })
	steps := strings.TrimSpace(mustRun(t, g, "sh", "-c", "touch /tmp/kill-stepped; sleep 0.5; cat /tmp/kill-steps"))
	bound := mustRun(t, g, "sh", "-c", fmt.Sprintf(snapshotKill, base))
	for _, by := range clockSteps {
		mustRun(t, g, "sh", "-c", fmt.Sprintf(stepClock, by))
		wall := mustRun(t, g, "date", "+%s")
		stepped(t, g, by, strings.TrimSpace(wall))
		if now := mustRun(t, g, "sh", "-c", fmt.Sprintf(snapshotKill, base)); now != bound {
			t.Fatalf("after a step of %d s the bindings are\n%swere\n%s", by, now, bound)
		}
	}
	t.Logf("%s steps while it bound, %d while it was bound", steps, len(clockSteps))
	if log := mustRun(t, g, "cat", "/tmp/kill-agent.log"); strings.Contains(log, "step=restore") || strings.Contains(log, "level=ERROR") {
		t.Errorf("it unbound, or a round failed:\n%s", log)
	}
	mustRun(t, g, "sh", "-c", "killall homenode-agent; while pidof homenode-agent >/dev/null; do sleep 0.05; done")
	if after := mustRun(t, g, "sh", "-c", fmt.Sprintf(snapshotKill, base)); after != before {
		t.Errorf("left behind:\n%s\nbefore:\n%s", after, before)
	}
}

// stepped waits for ten rounds after a step, and looks at each status on the way.
func stepped(t *testing.T, g *Guest, by int, wall string) {
	t.Helper()
	first := steppedNow(t, g)
	waitFor(t, g, fmt.Sprintf("ten rounds after a step of %d s, to %s", by, wall), func() bool {
		s := steppedNow(t, g)
		if s.Window.Length < 0 || s.Window.Length > patience || s.Rounds > 0 && s.bound() != 2 {
			t.Fatalf("after a step of %d s: a window of %v, %d are bound; problems %q", by, s.Window.Length, s.bound(), s.Window.Problems)
		}
		return s.Rounds >= first.Rounds+10
	})
}
