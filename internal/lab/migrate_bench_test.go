// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"homenode/internal/migration"
	"homenode/internal/set"
	"homenode/internal/trial"
	"homenode/internal/unit"
)

// contestant is one way to move the memory of the cgroup /mig from node 1 to node 0.
type contestant struct {
	name string
	mems string // that the cgroup may use before; "": all
	// script moves, and prints what did: a report of homenode's, or calls that were timed.
	script   string
	homenode bool
	share    float64 // of the measured maximum, that the rate is to be; 0: no limit
}

// Workers and all the rest are what homenode does by itself.
const byHomenode = "timeout 200 homenode-mover migrate --cgroup /mig --to 0 -o json </dev/null"

var (
	liveMax    = contestant{name: "homenode live", script: byHomenode + " --mode live --rate max --max-stall 20ms", homenode: true}
	frozen     = contestant{name: "homenode freeze", script: byHomenode + " --mode freeze", homenode: true}
	migratesIt = contestant{name: "migrate_pages", script: "for p in $(cat $base/mig/cgroup.procs); do homenode-load peer migrate-pages $p 1 0; done"}
	cpusetIt   = contestant{name: "cpuset.mems", mems: "1", script: "homenode-load peer write $base/mig/cpuset.mems 0"}
	memMigrate = contestant{name: "memory_migrate", mems: "1", script: "echo 1 > $base/mig/cpuset.memory_migrate; homenode-load peer write $base/mig/cpuset.mems 0"}
)

// live is homenode at a share of the measured maximum, which RATE stands for.
func live(share float64) contestant {
	return contestant{name: fmt.Sprintf("homenode live %.0f%%", 100*share), homenode: true, share: share,
		script: byHomenode + " --mode live --rate RATE --max-stall 20ms"}
}

// scenario is what is to be moved.
type scenario struct {
	name, about string
	start       string // in the guest: starts it; a victim is called v
	victim      bool
	files       []string // whose unmapped pages count, too
	state       string   // of the model
	repeats     int      // 0: as many as asked for
	contestants []contestant
}

const sleeper = "for p in %s; do start p$p mig hold --bind-cpu 2 --ws 4k --extra %s --thp off; done"

// The memory is on node 1, what a victim does on node 0.
func scenarios() []scenario {
	running := []contestant{liveMax, live(0.25), live(0.5), live(0.75), migratesIt, cpusetIt}
	return []scenario{
		{name: "running", about: "16 MiB of a thread that works on 4 MiB of it: its memory comes home", victim: true, state: "pace", contestants: running,
			start: "start v mig victim --bind-cpu 2 --cpus 0 --ws 4m --extra 12m --thp off --map-every 50"},
		{name: "neutral", about: "32 MiB that a thread does not use, whose own memory is at home", victim: true, state: "pace",
			contestants: []contestant{liveMax, live(0.5), migratesIt},
			start:       "start v mig victim --bind-cpu 2 --cpus 0 --touch worker --ws 4m --extra 32m --thp off --map-every 50"},
		{name: "many", about: "four sleeping processes of 12 MiB", state: "pace", contestants: []contestant{frozen, migratesIt}, start: fmt.Sprintf(sleeper, "1 2 3 4", "12m")},
		{name: "one", about: "a sleeping process of 48 MiB", state: "pace", contestants: []contestant{frozen, migratesIt}, start: fmt.Sprintf(sleeper, "1", "48m")},
		{name: "small", about: "a sleeping process of 8 MiB", state: "pace", contestants: []contestant{frozen, migratesIt}, start: fmt.Sprintf(sleeper, "1", "8m")},
		kinds,
	}
}

// kinds is about what moves at all: nothing is timed, and the model only counts.
var kinds = scenario{name: "kinds", about: "private, shared and mapped memory, and page cache nobody maps, asleep", state: "count", repeats: 2,
	contestants: []contestant{liveMax, migratesIt, cpusetIt}, files: []string{"/scratch/mig-a"},
	start: `cached /scratch/mig-a 50331648 2
truncate -s 16777216 /dev/shm/mig-s
start a mig hold --bind-cpu 2 --ws 16m --file /scratch/mig-a --extra 16m --thp off
start b mig hold --bind-cpu 2 --ws 16m --file /dev/shm/mig-s --extra 16m --thp on
start c mig hold --bind-cpu 2 --ws 16m --file /dev/shm/mig-s`}

// The other boot: cgroup v1 has what v2 has not.
func scenariosV1() []scenario {
	running, all := scenarios()[0], kinds
	running.contestants = []contestant{liveMax, migratesIt, memMigrate}
	all.contestants = []contestant{liveMax, migratesIt, memMigrate}
	return []scenario{running, all}
}

// One run, from start to end, in sections. The mover has the CPUs that no victim is
// pinned to.
const benchRun = `group mig MEMS
START || exit 1
echo "== before"; homenode-load pages --pid $(pids mig) FILES
homenode-load control STATE --phase 1 >/dev/null; [ -e /tmp/mig-v.pid ] && rest 0.8
echo "== begin"; homenode-load control STATE --phase 2
echo "== move"; taskset e sh -c 'SCRIPT' 2>/tmp/mig-move.err; code=$?; echo "== exit"; echo $code
echo "== end"; homenode-load control STATE --phase 3
[ -e /tmp/mig-v.pid ] && rest 0.8
echo "== status"; homenode-load control off --phase 0
echo "== after"; homenode-load pages --pid $(pids mig) FILES
echo "== victim"; [ -e /tmp/mig-v.pid ] && finish v
echo "== errors"; tail -c 2000 /tmp/mig-move.err
tidy`

// sample is one run. Times are the model's; what is unknown is absent.
type sample struct {
	Contestant string                        `json:"contestant"`
	Repeat     int                           `json:"repeat"`
	Warm       bool                          `json:"warm,omitempty"`
	Seconds    unit.Opt[float64]             `json:"seconds"`    // of the move itself
	WithStart  float64                       `json:"with_start"` // seconds, and of starting the programs
	Before     migration.Census              `json:"before"`
	After      migration.Census              `json:"after"`
	Left       map[migration.Kind]unit.Bytes `json:"left_bytes"`
	StallMS    unit.Opt[float64]             `json:"longest_stall_ms"`
	TailMS     unit.Opt[float64]             `json:"p999_ms"`
	OpsBefore  unit.Opt[float64]             `json:"ops_before"` // a model-second
	OpsDuring  unit.Opt[float64]             `json:"ops_during"`
	OpsAfter   unit.Opt[float64]             `json:"ops_after"`
	Asked      unit.Bytes                    `json:"rate_asked,omitempty"`
	Rate       unit.Opt[float64]             `json:"rate_bytes_per_s"`
	CallMS     unit.Opt[float64]             `json:"longest_call_ms"`
	Permille   float64                       `json:"slowest_permille"` // of the model's nominal rate
	Report     unit.Opt[migration.Report]    `json:"report"`
	Problem    string                        `json:"problem,omitempty"` // it does not count
}

type timedCall struct {
	MHz    float64 `json:"mhz"`
	Start  uint64  `json:"start_cycles"`
	End    uint64  `json:"end_cycles"`
	Return int64   `json:"return"`
	Error  string  `json:"error"`
}

type modelHead struct {
	Cycles   uint64   `json:"model_cycles"`
	MHz      float64  `json:"mhz"`
	Permille *float64 `json:"slowest_permille"`
}

// sections cuts what benchRun printed.
func sections(out string) map[string]string {
	m := map[string]string{}
	name := ""
	for line := range strings.Lines(out) {
		if s, ok := strings.CutPrefix(line, "== "); ok {
			name = strings.TrimSpace(s)
			continue
		}
		m[name] += line
	}
	return m
}

// readRun makes a sample of what a run printed.
func readRun(sc scenario, c contestant, out string) (s sample, err error) {
	in := sections(out)
	var before, after pagesCounted
	var begin, end, state modelHead
	for what, into := range map[string]any{"before": &before, "after": &after, "begin": &begin, "end": &end, "status": &state} {
		if err := json.Unmarshal([]byte(in[what]), into); err != nil {
			return s, fmt.Errorf("read %s: %w: %.300q", what, err, out)
		}
	}
	s.Before, s.After = before.census(), after.census()
	s.Left = map[migration.Kind]unit.Bytes{}
	for _, r := range s.After.Rows {
		s.Left[r.Kind] = r.Elsewhere(set.NodeSet{}, set.FromNodes(0))
	}
	s.WithStart = float64(end.Cycles-begin.Cycles) / begin.MHz / 1e6
	if state.Permille != nil {
		s.Permille = *state.Permille
	}
	from, to := begin.Cycles, end.Cycles
	if c.homenode {
		err = s.ofReport(in["move"])
	} else {
		from, to, err = s.ofCalls(in["move"])
	}
	if code := strings.TrimSpace(in["exit"]); err != nil || code != "0" && code != "3" {
		return s, fmt.Errorf("move by %s: exit %s, %v: %.500q %q", c.name, code, err, in["move"], in["errors"])
	}
	if sc.victim {
		err = s.ofVictim(in["victim"], begin.Cycles, end.Cycles, from, to)
	}
	return s, err
}

// ofReport: the longer of the move and of the time in which the target stood still.
func (s *sample) ofReport(text string) error {
	r, err := migration.DecodeReport([]byte(text))
	if err != nil {
		return err
	}
	result, _ := r.Result.Get()
	s.Report = unit.Some(r)
	s.Seconds = unit.Some(max(result.Time.Seconds(), r.Frozen.Or(0)))
	s.CallMS = unit.Some(result.Longest.Seconds() * 1e3)
	if rate, ok := result.Rate(); ok {
		s.Rate = unit.Some(float64(rate))
	}
	return nil
}

// ofCalls: a JSON document a call; together they are the move.
func (s *sample) ofCalls(text string) (from, to uint64, err error) {
	sum := 0.0
	for line := range strings.Lines(text) {
		var c timedCall
		if err := json.Unmarshal([]byte(line), &c); err != nil || c.Error != "" {
			return 0, 0, fmt.Errorf("read call %q: %v", line, err)
		}
		took := float64(c.End-c.Start) / c.MHz / 1e6
		sum += took
		s.CallMS = unit.Some(max(s.CallMS.Or(0), took*1e3))
		if from == 0 {
			from = c.Start
		}
		to = c.End
	}
	s.Seconds = unit.Some(sum)
	return from, to, nil
}

// ofVictim: from begin to end the mover's program ran, and from start to stop it moved,
// as far as that is known; homenode says only how long it moved, so that the worst
// stretch of that length stands for it.
func (s *sample) ofVictim(text string, begin, end, start, stop uint64) error {
	var v victimReport
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		return fmt.Errorf("read the victim's report: %w: %.300q", err, text)
	}
	known := func(f float64) unit.Opt[float64] { return unit.OptOf(f, !math.IsNaN(f)) }
	// Of the rests before and after, without the switching on and off.
	beside := uint64(0.6 * v.MHz * 1e6)
	s.OpsBefore = known(v.rate(begin-beside, begin))
	s.OpsAfter = known(v.rate(end, end+beside))
	s.OpsDuring = known(v.rate(start, stop))
	if s.Report.Known() {
		s.OpsDuring = known(v.lowest(begin, end, s.Seconds.Or(0)))
	}
	// An op that a call held up ends after it.
	s.StallMS = unit.Some(v.longest(begin, end+beside/12))
	s.TailMS = known(v.tail(2))
	return nil
}

// bench is one boot, and what was measured in it.
type bench struct {
	t       *testing.T
	g       *Guest
	version string
	fastest map[string]float64 // scenario: bytes a model-second, unthrottled
	absent  string             // why there is no homenode contestant
}

func benchScript(sc scenario, c contestant, rate unit.Bytes) string {
	files := ""
	for _, f := range sc.files {
		files += " --file " + f
	}
	return ". /tmp/mig-lib.sh\n" + strings.NewReplacer("MEMS", c.mems, "START", "{ "+sc.start+"\n}", "FILES", files, "STATE", sc.state,
		"SCRIPT", strings.ReplaceAll(c.script, "RATE", fmt.Sprintf("%dkB/s", int64(rate/1000)))).Replace(benchRun)
}

func (b *bench) once(sc scenario, c contestant, r trial.Run) sample {
	rate := unit.Bytes(c.share * b.fastest[sc.name])
	ctx, cancel := context.WithTimeout(b.t.Context(), 5*time.Minute)
	defer cancel()
	out, err := b.g.Run(ctx, "sh", "-c", benchScript(sc, c, rate))
	var s sample
	if err == nil {
		s, err = readRun(sc, c, out.Stdout)
	}
	s.Contestant, s.Repeat, s.Warm, s.Asked = c.name, r.Repeat, r.Warm, rate
	switch {
	case err != nil:
		s.Problem = err.Error() + " " + out.Stderr
	case sc.state == "pace" && s.Permille < slowestPermille:
		s.Problem = fmt.Sprintf("the model ran at %.0f ‰ of its rate for a while: the host is too busy", s.Permille)
	}
	if s.Problem != "" {
		b.t.Logf("%s, %s, repeat %d: %.1500s", sc.name, c.name, r.Repeat, s.Problem)
	}
	return s
}

// The model's rate, in thousandths of the nominal, that no quarter of a second of a run
// may fall below: the host was busy elsewhere then, and what depends on interrupts
// between its threads takes longer in the model's time, too.
const slowestPermille = 50

// run tries again what did not count, twice.
func (b *bench) run(sc scenario, c contestant, r trial.Run) (s sample) {
	for range 3 {
		if s = b.once(sc, c, r); s.Problem == "" {
			break
		}
	}
	return s
}

// of runs a scenario: warm-ups, then each contestant once a repeat, in an order that is
// mirrored every second time. The unthrottled warm-ups tell what a share is of.
func (b *bench) of(sc scenario, repeats int) (samples []sample) {
	var cs []contestant
	for _, c := range sc.contestants {
		if !c.homenode || b.absent == "" {
			cs = append(cs, c)
		}
	}
	if sc.repeats > 0 {
		repeats = sc.repeats
	}
	if sc.state == "pace" {
		samples = b.warm(sc, cs)
	}
	for _, r := range trial.Order(len(cs), repeats, 1) {
		samples = append(samples, b.run(sc, cs[r.Arm], r))
	}
	return samples
}

func (b *bench) warm(sc scenario, cs []contestant) (samples []sample) {
	var fastest []float64
	for i, c := range []contestant{cs[0], cs[0]} {
		s := b.run(sc, c, trial.Run{Warm: true, Repeat: i})
		if rate, ok := s.Rate.Get(); ok {
			fastest = append(fastest, rate)
		}
		samples = append(samples, s)
	}
	if m, ok := trial.Summarise(fastest); ok {
		b.fastest[sc.name] = m.Median
	}
	return samples
}

// benched is one scenario under one version of cgroups.
type benched struct {
	Name    string   `json:"name"`
	About   string   `json:"about"`
	Cgroup  string   `json:"cgroup"`
	Fastest float64  `json:"fastest_bytes_per_s,omitempty"` // unthrottled
	Samples []sample `json:"samples"`
}

// TestBenchMigrate measures homenode's moves against the other tools' (make
// bench-migrate): what stays behind, how long it takes, what a victim feels.
func TestBenchMigrate(t *testing.T) {
	dir := os.Getenv("HOMENODE_BENCH")
	if dir == "" {
		t.Skip("HOMENODE_BENCH is not set to the folder for the results: this measures, and make bench-migrate does")
	}
	repeats := 5
	if n, err := strconv.Atoi(os.Getenv("HOMENODE_BENCH_REPEATS")); err == nil {
		repeats = n
	}
	only := os.Getenv("HOMENODE_BENCH_ONLY") // scenarios, comma between
	var all []benched
	for _, v := range []struct {
		version   string
		scenarios []scenario
	}{{"v2", scenarios()}, {"v1", scenariosV1()}} {
		g, err := Boot(t.Context(), labOptionsFor(t, "two", v.version))
		if err != nil {
			t.Fatal(err)
		}
		readyToMove(t, g)
		b := &bench{t: t, g: g, version: v.version, fastest: map[string]float64{}}
		if r := moved(t, g, "homenode migrate --help"); !strings.Contains(r.Stdout, "--max-stall") {
			b.absent = "homenode has no command migrate"
		}
		for _, sc := range v.scenarios {
			if only != "" && !strings.Contains(","+only+",", ","+sc.name+",") {
				continue
			}
			begin := time.Now()
			done := benched{Name: sc.name, About: sc.about, Cgroup: v.version, Samples: b.of(sc, repeats)}
			done.Fastest = b.fastest[sc.name]
			all = append(all, done)
			fmt.Print(done.table())
			t.Logf("%s on %s took %.0f s", sc.name, v.version, time.Since(begin).Seconds())
		}
		g.Close()
	}
	targets := judgeMigration(all)
	fmt.Print(targetTable(targets))
	data, err := json.MarshalIndent(map[string]any{"schema": 1, "how": "modelled (lab)", "machine": "lab two", "date": time.Now().UTC(),
		"repeats": repeats, "scenarios": all, "targets": targets}, "", " ")
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "migrate.json"), append(data, '\n'), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, target := range targets {
		if !target.Met {
			t.Errorf("%s: UNMET: %s", target.Name, target.Want)
		}
	}
}
