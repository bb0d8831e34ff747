// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// setUpFrozen puts two processes that compute into a cgroup.
const setUpFrozen = `
base=%s
mkdir -p $base/still/a
dirs=$base/still/a
case $base in
*/cpuset) # v1: nothing is inherited, and the freezer is a hierarchy of its own
	for d in still still/a; do cat $base/cpuset.cpus > $base/$d/cpuset.cpus; cat $base/cpuset.mems > $base/$d/cpuset.mems; done
	mkdir -p /sys/fs/cgroup/freezer/still/a
	dirs="$dirs /sys/fs/cgroup/freezer/still/a" ;;
esac
for n in 1 2; do
	sh -c 'for d in '"$dirs"'; do echo $$ > $d/cgroup.procs; done; while :; do :; done' </dev/null >/dev/null 2>&1 &
done
while [ $(wc -l < ${dirs##* }/cgroup.procs) != 2 ]; do sleep 0.1; done
`

const tearDownFrozen = `
kill -9 $(cat %[1]s/still/a/cgroup.procs); sleep 0.3
rmdir %[1]s/still/a %[1]s/still
[ ! -d /sys/fs/cgroup/freezer/still ] || rmdir /sys/fs/cgroup/freezer/still/a /sys/fs/cgroup/freezer/still`

// The ways in which homenode and its guard end; $p is homenode, $wait the random
// time. What the file says is the last thing before.
var freezeEnds = []struct{ about, script string }{
	{"homenode at random", `sleep $wait; kill -9 $p`},
	{"homenode while it is frozen", `said; kill -9 $p`},
	{"guard, then homenode", `said; kill -STOP $p; kill -9 $(pidof homenode-thaw); kill -9 $p; gone; restore`},
	{"both at random, then an agent starts", `sleep $wait; kill -9 $p $(pidof homenode-thaw); gone; homenode agent --rounds 1 2>/dev/null >&2 || echo "agent: exit $?"`},
	{"both, then the next freeze", `said; kill -STOP $p; kill -9 $(pidof homenode-thaw) $p; gone; homenode freeze --cgroup /still/a --for 0s >/dev/null || echo "freeze: exit $?"`},
	{"guard only: homenode thaws", `said; kill -9 $(pidof homenode-thaw); gone; grep -q "thawed after" /tmp/freeze.out`},
}

// endFrozen freezes, ends that, and within five seconds wants the cgroup thawed and
// both processes to get on. It prints what was seen.
const endFrozen = `
base=%s wait=%s
running() {
	if [ -e $base/still/a/cgroup.freeze ]; then
		[ $(cat $base/still/a/cgroup.freeze) = 0 ] && grep -q "frozen 0" $base/still/a/cgroup.events
	else
		[ $(cat /sys/fs/cgroup/freezer/still/a/freezer.state) = THAWED ]
	fi
}
worked() { for pid in $(cat $base/still/a/cgroup.procs); do cut -d" " -f14 /proc/$pid/stat; done | tr "\n" " "; }
get_on() { set -- $before $(worked); [ $3 -gt $1 ] && [ $4 -gt $2 ]; }
said() { until grep -q frozen /tmp/freeze.out; do kill -0 $p || return 1; sleep 0.05; done; running && echo "said frozen, but runs"; true; }
gone() { while kill -0 $p 2>/dev/null; do sleep 0.05; done; }
restore() { homenode restore; e=$?; [ $e = 0 ] || [ $e = 4 ] || echo "restore: exit $e"; }
within5() { n=0; until "$@"; do n=$((n+1)); [ $n -lt 50 ] || { echo "not within 5 s: $*"; return 1; }; sleep 0.1; done; }
: > /tmp/freeze.out
homenode freeze --cgroup /still/a --for 60s </dev/null >/tmp/freeze.out 2>&1 &
p=$!
%s
gone
within5 running
before=$(worked)
within5 get_on
grep -q frozen /tmp/freeze.out && echo "was frozen"
cat /tmp/freeze.out >&2
true
`

// A cgroup that homenode froze runs again whatever ended homenode, its guard, or both.
func TestLabFrozenIsThawed(t *testing.T) {
	for version, usual := range map[string]int{"v2": 12, "v1": 6} {
		t.Run(version, func(t *testing.T) { freezeAtRandom(t, version, killPoints(t, usual)) })
	}
}

func freezeAtRandom(t *testing.T, version string, points int) {
	g := guest(t, "two", version)
	base := cgroupBase(version)
	mustRun(t, g, "sh", "-c", fmt.Sprintf(setUpFrozen, base))
	defer mustRun(t, g, "sh", "-c", fmt.Sprintf(tearDownFrozen, base))
	rng := rand.New(rand.NewPCG(killSeed(), 8))
	frozen := 0
	for i := range points {
		end := freezeEnds[i%len(freezeEnds)]
		wait := fmt.Sprintf("%.3f", 1.5*rng.Float64())
		r, err := g.Run(context.Background(), "sh", "-c", fmt.Sprintf(endFrozen, base, wait, end.script))
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(r.Stdout, "was frozen") {
			frozen++
		}
		if r.Exit != 0 || strings.Contains(r.Stdout, "not within") || strings.Contains(r.Stdout, "but runs") || strings.Contains(r.Stdout, ": exit") {
			t.Fatalf("kill point %d of seed %d, %s (after %s s): exit %d\n%s%s", i, killSeed(), end.about, wait, r.Exit, r.Stdout, r.Stderr)
		}
	}
	t.Logf("%d kill points, %d of them after it was frozen", points, frozen)
	if 2*frozen < points {
		t.Errorf("%d of %d kill points were after it was frozen: too few were tried", frozen, points)
	}
	interrupted(t, g)
	if log := mustRun(t, g, "sh", "-c", "homenode restore; e=$?; [ $e = 0 ] || [ $e = 4 ]; pidof homenode-thaw || true"); strings.TrimSpace(log) != "" {
		t.Errorf("left on record, or a guard: %s", log)
	}
}

// ctrl-C thaws, and says so.
func interrupted(t *testing.T, g *Guest) {
	t.Helper()
	r, err := g.Run(context.Background(), "timeout", "-s", "INT", "4", "homenode", "freeze", "--cgroup", "/still/a", "--for", "60s")
	if err != nil || !strings.Contains(r.Stdout, "thawed after") || !strings.Contains(r.Stderr, "interrupted") {
		t.Errorf("SIGINT: %+v, %v", r, err)
	}
	if r, err = g.Run(context.Background(), "homenode", "freeze", "--cgroup", "/still/a", "--for", "60s", "--limit", "1s"); err != nil || r.Exit != 1 || !strings.Contains(r.Stderr, "the guard is gone") {
		t.Errorf("beyond the limit: %+v, %v", r, err)
	}
}
