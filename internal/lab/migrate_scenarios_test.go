// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"fmt"
	"slices"
	"strings"

	"homenode/internal/unit"
)

// contestant is one way to move the memory of the cgroup /mig from node 1 to node 0.
type contestant struct {
	name string
	mems string // nodes that the cgroup may use before; "": all
	// script moves, and prints the result: a report of homenode's, or calls that were
	// timed.
	script   string
	homenode bool
	tells    bool    // its calls report how many pages stay
	share    float64 // rate as a share of the measured maximum; 0: no limit
}

// Workers and everything else are homenode's defaults.
const byHomenode = "timeout 200 homenode-mover migrate --cgroup /mig --to 0 -o json </dev/null"

var (
	liveMax = contestant{name: "homenode live", script: byHomenode + " --mode live --rate max --max-stall 20ms", homenode: true}
	// If nothing is timed, calls may take any time.
	liveUntimed = contestant{name: liveMax.name, script: byHomenode + " --mode live --rate max --max-stall 1s", homenode: true}
	frozen      = contestant{name: "homenode freeze", script: byHomenode + " --mode freeze", homenode: true}
	migratesIt  = contestant{name: "migrate_pages", tells: true, script: "for p in $(cat $base/mig/cgroup.procs); do homenode-load peer migrate-pages $p 1 0; done"}
	cpusetIt    = contestant{name: "cpuset.mems", mems: "1", script: "homenode-load peer write $base/mig/cpuset.mems 0"}
	memMigrate  = contestant{name: "memory_migrate", mems: "1", script: "echo 1 > $base/mig/cpuset.memory_migrate; homenode-load peer write $base/mig/cpuset.mems 0"}
)

// live is homenode at a share of the measured maximum. RATE stands for it.
func live(share float64) contestant {
	return contestant{name: fmt.Sprintf("homenode live %.0f%%", 100*share), homenode: true, share: share,
		script: byHomenode + " --mode live --rate RATE --max-stall 20ms"}
}

// scenario describes what is moved.
type scenario struct {
	name, about string
	start       string // in the guest: starts it; a victim is called v
	victim      bool
	files       []string // files whose unmapped pages also count
	untimed     bool     // checks what moves, and not how fast
	repeats     int      // 0: the requested number
	contestants []contestant
}

const (
	sleeper = "for p in %s; do start p$p mig hold --bind-cpu 2 --ws 4k --extra %s --thp %s; done"
	// The memory that the victim works on, and the memory next to it.
	worksOn = "start v mig victim --bind-cpu 2 --cpus 0 --thp off --map-every 50 --ws %s --extra %s"
)

// The memory is on node 1, the victim's work on node 0. Sizes and repeats are such that
// everything takes about a quarter of an hour at five repeats. The rates of 25 and 75 %
// have less to move, because a quarter of the rate takes four times as long; 50 % is
// used to judge the victim. Each is a share of the unthrottled rate in the same
// scenario.
func scenarios() []scenario {
	both := []contestant{frozen, migratesIt}
	return []scenario{
		{name: "neutral", about: "8 MiB that a thread does not use, whose own memory is at home: a move changes its speed by nothing but what it costs",
			victim: true, contestants: []contestant{liveMax, live(0.5), migratesIt}, start: fmt.Sprintf(worksOn, "4m --touch worker", "8m")},
		{name: "running", about: "10 MiB of a thread that works on 4 MiB of it: its memory comes home", victim: true,
			contestants: []contestant{liveMax, live(0.5), migratesIt, cpusetIt}, start: fmt.Sprintf(worksOn, "4m", "6m")},
		{name: "rates", about: "4 MiB of a thread that works on 1 MiB of it, at other rates", victim: true, repeats: 3,
			contestants: []contestant{live(0.25), live(0.75)}, start: fmt.Sprintf(worksOn, "1m", "3m")},
		{name: "many", about: "four sleeping processes of 12 MiB; migrate_pages takes them one after the other, as it is a call for one process",
			contestants: both, start: fmt.Sprintf(sleeper, "1 2 3 4", "12m", "off")},
		{name: "one", about: "a sleeping process of 24 MiB", contestants: both, start: fmt.Sprintf(sleeper, "1", "24m", "off")},
		{name: "small", about: "a sleeping process of 8 MiB", contestants: both, start: fmt.Sprintf(sleeper, "1", "8m", "off")},
		{name: "thp", about: "a sleeping process of 8 MiB in huge pages, each of them one call: what that takes, which no bound can change", repeats: 2,
			contestants: []contestant{liveMax, migratesIt}, start: fmt.Sprintf(sleeper, "1", "8m", "on")},
		kinds,
	}
}

// kinds shows what moves at all, without timing.
var kinds = scenario{name: "kinds", about: "private, shared and mapped memory, and unmapped page cache, asleep", untimed: true, repeats: 2,
	contestants: []contestant{liveUntimed, migratesIt, cpusetIt}, files: []string{"/scratch/mig-a"},
	start: `cached /scratch/mig-a 50331648 2
truncate -s 16777216 /dev/shm/mig-s
start a mig hold --bind-cpu 2 --ws 16m --file /scratch/mig-a --extra 16m --thp off
start b mig hold --bind-cpu 2 --ws 16m --file /dev/shm/mig-s --extra 16m --thp on
start c mig hold --bind-cpu 2 --ws 16m --file /dev/shm/mig-s`}

// The other boot: cgroup v1 has files that v2 lacks.
func scenariosV1() []scenario {
	all := scenarios()
	running := all[slices.IndexFunc(all, func(sc scenario) bool { return sc.name == "running" })]
	running.contestants, running.repeats = []contestant{liveMax, migratesIt, memMigrate}, 2
	every := kinds
	every.contestants = []contestant{liveUntimed, migratesIt, memMigrate}
	return []scenario{running, every}
}

// One run from start to end, in sections. The mover has the CPUs to which no victim
// is pinned, and before the next run the guest gets half a second to become quiet.
const benchRun = `group mig MEMS
START || exit 1
echo "== before"; homenode-load pages --pid $(pids mig) FILES
homenode-load control on --phase 1 >/dev/null; QUIET
echo "== begin"; homenode-load control on --phase 2
echo "== move"; taskset e sh -c 'SCRIPT' 2>/tmp/mig-move.err; code=$?; echo "== exit"; echo $code
echo "== end"; homenode-load control on --phase 3
QUIET
homenode-load control off --phase 0 >/dev/null
echo "== after"; homenode-load pages --pid $(pids mig) FILES
echo "== victim"; [ -e /tmp/mig-v.pid ] && finish v
echo "== errors"; tail -c 2000 /tmp/mig-move.err
tidy; sleep 0.5`

// quiet is how long nothing moves before and after a move. It shows the victim's normal
// rate.
func (sc scenario) quiet() string {
	switch {
	case sc.victim:
		return "sleep 0.8"
	case sc.untimed:
		return ":"
	}
	return "sleep 0.2"
}

func benchScript(sc scenario, c contestant, rate unit.Bytes) string {
	files := ""
	for _, f := range sc.files {
		files += " --file " + f
	}
	return ". /tmp/mig-lib.sh\n" + strings.NewReplacer("MEMS", c.mems, "START", "{ "+sc.start+"\n}", "FILES", files, "QUIET", sc.quiet(),
		"SCRIPT", strings.ReplaceAll(c.script, "RATE", fmt.Sprintf("%dkB/s", int64(rate/1000)))).Replace(benchRun)
}
