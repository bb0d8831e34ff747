// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
)

// setUpFrozen starts two processes of 4 MiB each that work, and measures how many
// seconds a move of all of it takes, from start to end. The lab moves some 4 MiB a second: more
// memory would only make each point longer.
const setUpFrozen = `
group mig
for n in a b; do start $n mig server --workers 1 --ws 2MiB --extra 2MiB --thp off --closed --think-us 20000; done
now() { cut -d" " -f1 /proc/uptime; }
for n in 0 1; do
	began=$(now)
	homenode-mover migrate --cgroup /mig --to $n --mode freeze -o json </dev/null >/tmp/freeze.out 2>&1 || [ $? = 4 ] || { cat /tmp/freeze.out; exit 1; }
	echo $began $(now) | awk '{ print $2 - $1 }'
done | tail -n 1
`

// beginOfFreeze prints how long it takes until homenode has frozen the cgroup.
const beginOfFreeze = `
now() { cut -d" " -f1 /proc/uptime; }
: > /tmp/freeze.out
began=$(now)
homenode freeze --cgroup /mig --for 60s </dev/null >/tmp/freeze.out 2>&1 & p=$!
until grep -q frozen /tmp/freeze.out; do kill -0 $p || exit 1; sleep 0.02; done
echo $began $(now) | awk '{ print $2 - $1 + 0.01 }'
kill -INT $p; wait $p
true
`

// freezeEnd is a way in which homenode and its guard end; $p is homenode, $wait and $part
// random times. The file has the last message before the end.
type freezeEnd struct{ about, script string }

// The ends of a homenode that only freezes. Its message is in the file.
var freezeEnds = []freezeEnd{
	{"homenode at random", `sleep $wait; seen; kill -9 $p`},
	{"homenode while it is frozen", `said; seen; kill -9 $p`},
	{"guard, then homenode", `said; kill -STOP $p; kill -9 $(pidof homenode-thaw); seen; kill -9 $p; gone; restore`},
	{"both at random, then an agent starts", `sleep $wait; g=$(pidof homenode-thaw); seen; kill -9 $p $g; gone; homenode agent --rounds 1 2>/dev/null >&2 || echo "agent: exit $?"`},
	{"both, then the next freeze", `said; kill -STOP $p; g=$(pidof homenode-thaw); seen; kill -9 $g $p; gone; homenode freeze --cgroup /mig --for 0s >/dev/null || echo "freeze: exit $?"`},
	{"guard only: homenode thaws", `said; g=$(pidof homenode-thaw); seen; kill -9 $g; gone; grep -q "thawed after" /tmp/freeze.out || echo "said nothing: exit"`},
}

// The ends of a homenode that moves. From outside its progress is not visible, only that
// the cgroup is frozen.
var moveEnds = []freezeEnd{
	{"mover at random", `sleep $wait; seen; kill -9 $p`},
	{"mover while it moves", `frozen; sleep $part; seen; kill -9 $p`},
	{"both while it moves, then restore", `frozen; sleep $part; g=$(pidof homenode-thaw); seen; kill -9 $p $g; gone; restore`},
	{"guard only, while it moves: homenode thaws", `frozen; g=$(pidof homenode-thaw); seen; kill -9 $g; gone`},
	{"guard, then mover", `frozen; sleep $part; kill -STOP $p; kill -9 $(pidof homenode-thaw); seen; kill -9 $p; gone; restore`},
	{"both at random, then the next freeze", `sleep $wait; g=$(pidof homenode-thaw); seen; kill -9 $p $g; gone; homenode freeze --cgroup /mig --for 0s >/dev/null || echo "freeze: exit $?"`},
}

// endFrozen starts a command that freezes, ends it, and requires that the cgroup is
// thawed and both processes make progress. Its time limit is so long that only a hang
// exceeds it. It prints its observations.
const endFrozen = `
wait=%.3f part=%.3f
file=$base/mig/cgroup.freeze
[ -e $file ] || file=/sys/fs/cgroup/freezer/mig/freezer.state
running() { case $(cat $file) in 0) grep -q "frozen 0" $base/mig/cgroup.events ;; THAWED) ;; *) false ;; esac; }
worked() { for pid in $(cat $base/mig/cgroup.procs); do cut -d" " -f14 /proc/$pid/stat; done | tr "\n" " "; }
get_on() { set -- $before $(worked); [ $3 -gt $1 ] && [ $4 -gt $2 ]; }
said() { until grep -q frozen /tmp/freeze.out; do kill -0 $p || return 1; sleep 0.05; done; running && echo "said frozen, but runs"; true; }
frozen() { until ! running; do kill -0 $p 2>/dev/null || return 1; done; }
seen() { running || echo "was frozen"; }
gone() { while kill -0 $p 2>/dev/null; do sleep 0.05; done; }
restore() { homenode restore; e=$?; [ $e = 0 ] || [ $e = 4 ] || echo "restore: exit $e"; }
soon() { n=0; until "$@"; do n=$((n+1)); [ $n -lt 300 ] || { echo "not within 30 s: $*"; return 1; }; sleep 0.1; done; [ $n -lt 50 ] || echo "slow: $*: $n"; }
# on NODE: how many of their pages are there
on() { cat /tmp/mig-a.pid /tmp/mig-b.pid | while read pid; do cat /proc/$pid/numa_maps; done | tr " " "\n" | awk -F= -v n=N$1 '$1 == n { sum += $2 } END { print sum + 0 }'; }
to=0; [ $(on 0) -gt $(on 1) ] && to=1
had=$(on $to)
: > /tmp/freeze.out
%s </dev/null >/tmp/freeze.out 2>&1 &
p=$!
%s
gone
soon running
before=$(worked)
soon get_on
[ $(($(on $to) - had)) -gt 128 ] && [ $(on $((1 - to))) -gt 128 ] && echo "was halfway"
cat /tmp/freeze.out >&2
true
`

const (
	onlyFreezes = "homenode freeze --cgroup /mig --for 60s"
	movesFrozen = "homenode-mover migrate --cgroup /mig --to $to --mode freeze -o json"
)

// A cgroup that homenode froze runs again, whether homenode, its guard, or both ended.
// Every second time homenode is moving its memory.
func TestLabFrozenIsThawed(t *testing.T) {
	t.Parallel()
	for version, usual := range map[string]int{"v2": 12, "v1": 6} {
		t.Run(version, func(t *testing.T) { freezeAtRandom(t, version, killPoints(t, usual)) })
	}
}

func freezeAtRandom(t *testing.T, version string, points int) {
	g := forMoving(t, version)
	length, begin := secondsOf(t, g, setUpFrozen), secondsOf(t, g, beginOfFreeze)
	rng := rand.New(rand.NewPCG(killSeed(), 8))
	frozen, moving, halfway, slow := 0, 0, 0, 0
	var each strings.Builder
	for i := range points {
		starts, ends, wait := onlyFreezes, freezeEnds, 2*begin*rng.Float64()
		if i%2 == 0 {
			starts, ends, wait = movesFrozen, moveEnds, length*rng.Float64()
		}
		end := ends[(i/2+points/2)%len(ends)] // v1 starts with other ends than v2, in case it tries fewer
		// If a process that should end during the move ended too late because the host
		// got faster, it is tried again with an earlier end.
		part := length * rng.Float64() / 4
		r := moved(t, g, fmt.Sprintf(endFrozen, wait, part, starts, end.script))
		for range 3 {
			if notThawed(r) || !strings.HasPrefix(end.script, "frozen;") || strings.Contains(r.Stdout, "was frozen") {
				break
			}
			part /= 4
			r = moved(t, g, fmt.Sprintf(endFrozen, wait, part, starts, end.script))
		}
		if strings.Contains(r.Stdout, "was frozen") {
			frozen++
			moving += (i + 1) % 2
		}
		fmt.Fprintf(&each, "%d, %s, after %.3f s: %q %.300q\n", i, end.about, wait, r.Stdout, r.Stderr)
		halfway += strings.Count(r.Stdout, "was halfway")
		slow += strings.Count(r.Stdout, "slow: ")
		if notThawed(r) {
			t.Fatalf("kill point %d of seed %d, %s (after %.3f s): exit %d\n%s%s", i, killSeed(), end.about, wait, r.Exit, r.Stdout, r.Stderr)
		}
	}
	t.Logf("%d kill points, %d of them after it was frozen: %d while homenode moved, %d with some moved and some not; a move takes %.1f s; %d were not over within 5 s", points, frozen, moving, halfway, length, slow)
	if 2*frozen < points || 4*moving < points {
		t.Errorf("%d of %d kill points were after it was frozen, %d while it was moved: too few were tried:\n%s", frozen, points, moving, each.String())
	}
	interrupted(t, g)
	if log := mustRun(t, g, "sh", "-c", "homenode restore; e=$?; [ $e = 0 ] || [ $e = 4 ]; pidof homenode-thaw || true"); strings.TrimSpace(log) != "" {
		t.Errorf("left on record, or a guard: %s", log)
	}
}

func notThawed(r Result) bool {
	return r.Exit != 0 || strings.Contains(r.Stdout, "not within") || strings.Contains(r.Stdout, "but runs") || strings.Contains(r.Stdout, ": exit")
}

// secondsOf is the last number that a script prints.
func secondsOf(t *testing.T, g *Guest, script string) float64 {
	t.Helper()
	r := moved(t, g, script)
	length, err := strconv.ParseFloat(strings.TrimSpace(r.Stdout), 64)
	if r.Exit != 0 || err != nil || length <= 0 {
		t.Fatalf("start: exit %d, %v\n%s%s", r.Exit, err, r.Stdout, r.Stderr)
	}
	return length
}

// Ctrl-C thaws the cgroup, and reports it.
func interrupted(t *testing.T, g *Guest) {
	t.Helper()
	const interrupt = `rm -f /tmp/freeze.out; : > /tmp/freeze.out; homenode freeze --cgroup /mig --for 60s </dev/null >/tmp/freeze.out 2>/tmp/freeze.err & p=$!
until grep -q frozen /tmp/freeze.out; do kill -0 $p || break; sleep 0.05; done
kill -INT $p; wait $p; cat /tmp/freeze.out; cat /tmp/freeze.err >&2`
	ctx, cancel := g.Within(t.Context(), patience)
	defer cancel()
	r, err := g.Run(ctx, "sh", "-c", interrupt)
	if err != nil || !strings.Contains(r.Stdout, "thawed after") || !strings.Contains(r.Stderr, "interrupted") {
		t.Errorf("SIGINT: %+v, %v", r, err)
	}
	if r, err = g.Run(ctx, "homenode", "freeze", "--cgroup", "/mig", "--for", "60s", "--limit", "10s"); err != nil || r.Exit != 1 || !strings.Contains(r.Stderr, "the guard is gone") {
		t.Errorf("beyond the limit: %+v, %v", r, err)
	}
}
