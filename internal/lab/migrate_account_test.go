// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"homenode/internal/migration"
	"homenode/internal/set"
	"homenode/internal/unit"
)

// A process maps and unmaps next to a stable mapping of 16 MiB, as fast as it can: every
// move takes all of that mapping.
func TestLabMigrateChurn(t *testing.T) {
	t.Parallel()
	g := forMoving(t, "v2")
	putProgram(t, g, "churn")
	const size = 16 << 20
	start := fmt.Sprintf(`group mig; rm -f /tmp/mig-churn.log
sh -c '. /tmp/mig-lib.sh; enter mig; exec taskset 1 /tmp/churn %d' </dev/null >/tmp/mig-churn.log 2>&1 &
i=0; until grep -q ready /tmp/mig-churn.log || [ $i -gt 400 ]; do sleep 0.05; i=$((i + 1)); done; grep ready /tmp/mig-churn.log`, size)
	if r := moved(t, g, start); r.Exit != 0 {
		t.Fatalf("start: exit %d\n%s", r.Exit, r.Stderr)
	}
	for round := range killPoints(t, 2) {
		to := 1 - round%2
		report, _ := migrates(t, g, fmt.Sprintf("--cgroup /mig --to %d --rate 64MB/s", to), 0, 3)
		result, _ := report.Result.Get()
		census := countPages(t, g, "mig")
		row, _ := census.Of(migration.Anon)
		if left := row.Elsewhere(set.NodeSet{}, set.FromNodes(to)); result.Moved() < size*99/100 || left > size/100 {
			t.Errorf("move %d: %s, moved %v of %v, %v are elsewhere: %q %q", round, report.Outcome, result.Moved(), unit.Bytes(size), left, result.Problems, report.Notes)
		}
		accounted(t, fmt.Sprintf("move %d", round), report)
	}
}

// accounted: every byte that there was to move was moved, is gone, failed or stayed.
func accounted(t *testing.T, what string, r migration.Report) migration.Result {
	t.Helper()
	task := r.Task().Elsewhere(r.From, r.To)
	result, ok1 := r.Result.Get()
	after, ok2 := r.After.Get()
	if !ok1 || !ok2 {
		t.Fatalf("%s: %s without a result or a census: %+v", what, r.Outcome, r)
	}
	stayed := max(0, after.Elsewhere(r.From, r.To)-result.Failed())
	if sum := result.Moved() + result.Gone() + result.Failed() + stayed; sum < task || sum > task+slackBytes+task/100 {
		t.Errorf("%s: %v moved, %v gone, %v failed, %v stayed: that is %v of %v", what, result.Moved(), result.Gone(), result.Failed(), stayed, sum, task)
	}
	return result
}

// A target is killed at random points of its move, all of its processes or one of two.
// Every byte is accounted for, and a move whose target ended halfway is not complete.
func TestLabMigrateKilled(t *testing.T) {
	t.Parallel()
	g := forMoving(t, "v2")
	const one = 12 << 20
	random := rand.New(rand.NewPCG(killSeed(), 5))
	halfway, points := 0, killPoints(t, 3)
	for i := range points {
		victims, pages := []string{"a", "a b"}[random.IntN(2)], 1+random.IntN(2*one/4096-1024)
		what := fmt.Sprintf("point %d: %s killed with %d pages moved", i, victims, pages)
		script := fmt.Sprintf(`group mig; for n in a b; do start $n mig hold --bind-cpu 0 --ws 12m --thp off || exit 1; done
(moving mig %d; for n in %s; do kill -9 $(cat /tmp/mig-$n.pid); done) </dev/null >/dev/null 2>&1 & echo $! > /tmp/mig-meanwhile.pid`, pages, victims)
		if r := moved(t, g, script); r.Exit != 0 {
			t.Fatalf("%s: exit %d\n%s", what, r.Exit, r.Stderr)
		}
		report, _ := migrates(t, g, "--cgroup /mig --to 1 --rate 16MB/s", 0, 3)
		result := accounted(t, what, report)
		if result.Moved() > 0 && result.Gone() > report.Before.Total()/100 {
			halfway++
			if victims == "a b" && report.Outcome == migration.Complete {
				t.Errorf("%s: complete, with %v gone", what, result.Gone())
			}
		}
		if victims == "a" {
			atHome(t, what, countPages(t, g, "mig"), 1, migration.Anon)
		}
		t.Logf("%s: %s: %v moved, %v gone, %v failed", what, report.Outcome, result.Moved(), result.Gone(), result.Failed())
		moved(t, g, "kill $(cat /tmp/mig-meanwhile.pid) 2>/dev/null; killall -9 homenode-load; while pidof homenode-load >/dev/null; do sleep 0.05; done")
	}
	if 4*halfway < points {
		t.Errorf("%d of %d were killed halfway: too few to say anything", halfway, points)
	}
}
