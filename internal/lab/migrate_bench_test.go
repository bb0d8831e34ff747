// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"homenode/internal/experiment"
	"homenode/internal/migration"
	"homenode/internal/set"
	"homenode/internal/unit"
)

// sample is one run. Times are the model's; an unknown figure is absent.
type sample struct {
	Contestant string                        `json:"contestant"`
	Repeat     int                           `json:"repeat"`
	Warm       bool                          `json:"warm,omitempty"`
	Seconds    unit.Opt[float64]             `json:"seconds"`    // of the move itself
	WithStart  float64                       `json:"with_start"` // seconds, and of starting the programs
	Before     migration.Census              `json:"before"`
	After      migration.Census              `json:"after"`
	Left       map[migration.Kind]unit.Bytes `json:"left_bytes"`
	Stayed     int64                         `json:"pages_stayed,omitempty"` // by the calls' own count
	StallMS    unit.Opt[float64]             `json:"longest_stall_ms"`
	QuietMS    unit.Opt[float64]             `json:"longest_op_before_ms"` // when nothing moved
	TailMS     unit.Opt[float64]             `json:"p999_ms"`
	OpsBefore  unit.Opt[float64]             `json:"ops_before"` // a model-second
	OpsDuring  unit.Opt[float64]             `json:"ops_during"`
	OpsAfter   unit.Opt[float64]             `json:"ops_after"`
	OfStep     unit.Opt[float64]             `json:"ops_of_step"` // see ofVictim
	Asked      unit.Bytes                    `json:"rate_asked,omitempty"`
	Rate       unit.Opt[float64]             `json:"rate_bytes_per_s"`
	CallMS     unit.Opt[float64]             `json:"longest_call_ms"`
	Report     unit.Opt[migration.Report]    `json:"report"`
	// A run that failed does not count, and makes the bench fail.
	Failure string `json:"failure,omitempty"`
}

type timedCall struct {
	MHz    float64 `json:"mhz"`
	Start  uint64  `json:"start_cycles"`
	End    uint64  `json:"end_cycles"`
	Return int64   `json:"return"`
	Error  string  `json:"error"`
}

type modelHead struct {
	Cycles uint64  `json:"model_cycles"`
	MHz    float64 `json:"mhz"`
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

// readRun makes a sample of a run's output.
func readRun(sc scenario, c contestant, out string) (s sample, err error) {
	in := sections(out)
	var before, after pagesCounted
	var begin, end modelHead
	for what, into := range map[string]any{"before": &before, "after": &after, "begin": &begin, "end": &end} {
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
	from, to := begin.Cycles, end.Cycles
	if c.homenode {
		err = s.ofReport(in["move"])
	} else {
		from, to, err = s.ofCalls(in["move"])
	}
	if code := strings.TrimSpace(in["exit"]); err != nil || code != "0" && code != "3" {
		return s, fmt.Errorf("move by %s: exit %s, %v: %.500q %q", c.name, code, err, in["move"], in["errors"])
	}
	if !c.tells {
		s.Stayed = 0
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
	result, ok := r.Result.Get()
	if !ok {
		return fmt.Errorf("the report has no result: outcome %s", r.Outcome)
	}
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
		s.Stayed += c.Return
		s.CallMS = unit.Some(max(s.CallMS.Or(0), took*1e3))
		if from == 0 {
			from = c.Start
		}
		to = c.End
	}
	s.Seconds = unit.Some(sum)
	return from, to, nil
}

// ofVictim: the mover's program ran from begin to end, and moved from start to stop, as
// far as that is known. homenode reports only how long it moved, so the worst stretch of
// that length is used.
//
// Where the victim's own memory comes home, neither the rate before nor the rate after is
// what is to be expected during the move. The nearest is a step: the rate before until
// its pages are at home, and the rate after from then on. That moment is taken from the
// victim's rate.
func (s *sample) ofVictim(text string, begin, end, start, stop uint64) error {
	var v victimReport
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		return fmt.Errorf("read the victim's report: %w: %.300q", err, text)
	}
	known := func(f float64) unit.Opt[float64] { return unit.OptOf(f, !math.IsNaN(f)) }
	// Of the quiet before and after, without the time of switching on and off.
	beside := uint64(0.6 * v.MHz * 1e6)
	before, after := v.rate(begin-beside, begin), v.rate(end, end+beside)
	s.OpsBefore, s.OpsAfter = known(before), known(after)
	took := float64(stop-start) / v.MHz / 1e6
	s.OpsDuring = known(v.rate(start, stop))
	if s.Report.Known() {
		start, stop, took = begin, end, s.Seconds.Or(0)
		s.OpsDuring = known(v.lowest(start, stop, took))
	}
	home := v.atHome(start, stop, before, after)
	s.OfStep = known(v.against(start, stop, took, func(at uint64) float64 {
		if at < home {
			return before
		}
		return after
	}))
	// An operation that a call delayed ends after the call.
	s.StallMS = unit.Some(v.longest(begin, end+beside/12))
	s.QuietMS = known(v.quiet(begin-beside, begin))
	s.TailMS = known(v.tail(2))
	return nil
}

// bench is one boot.
type bench struct {
	t *testing.T
	g *Guest
}

// run adds one run: a sample, whatever its result.
func (b *bench) run(d *benched, c contestant, r experiment.Run) sample {
	s := b.once(d.scenario, c, r, d.Fastest)
	d.Samples = append(d.Samples, s)
	return s
}

func (b *bench) once(sc scenario, c contestant, r experiment.Run, fastest float64) sample {
	rate := unit.Bytes(c.share * fastest)
	if c.share > 0 && rate == 0 {
		return sample{Contestant: c.name, Repeat: r.Repeat, Failure: "failed: no unthrottled run counts, of whose rate this is a share"}
	}
	ctx, cancel := b.g.Within(b.t.Context(), 5*time.Minute)
	defer cancel()
	out, err := b.g.Run(ctx, "sh", "-c", benchScript(sc, c, rate))
	var s sample
	if err == nil {
		s, err = readRun(sc, c, out.Stdout)
	}
	s.Contestant, s.Repeat, s.Warm, s.Asked = c.name, r.Repeat, r.Warm, rate
	if err != nil {
		s.Failure = strings.TrimSpace("failed: " + err.Error() + " " + out.Stderr)
		b.t.Logf("%s, %s, repeat %d: %.1500s", sc.name, c.name, r.Repeat, s.Failure)
		moved(b.t, b.g, "tidy") // which the script may not have come to
	}
	return s
}

// of runs a scenario: warm-ups, then each contestant once a repeat, in an order that is
// reversed every second time. Shares are relative to the rate of the unthrottled
// warm-ups.
func (b *bench) of(d *benched) {
	cs := d.scenario.contestants
	if !d.scenario.untimed {
		b.warm(d)
	}
	for _, r := range experiment.Order(len(cs), d.Repeats, 1) {
		b.run(d, cs[r.Arm], r)
	}
}

// warm: two unthrottled ones where a share is taken of what they measure, otherwise one
// of the first contestant.
func (b *bench) warm(d *benched) {
	n, c := 1, d.scenario.contestants[0]
	if slices.ContainsFunc(d.scenario.contestants, func(c contestant) bool { return c.share > 0 }) {
		n, c = 2, liveMax
	}
	var fastest []float64
	for i := range n {
		s := b.run(d, c, experiment.Run{Warm: true, Repeat: i})
		if rate, ok := s.Rate.Get(); ok && s.counts() {
			fastest = append(fastest, rate)
		}
	}
	if m, ok := experiment.Summarise(fastest); ok {
		d.Fastest = m.Median
	}
}

// counts reports that nothing is wrong with a run; a warm-up never counts.
func (s sample) counts() bool { return s.Failure == "" }

// benched is one scenario under one version of cgroups.
type benched struct {
	Name        string   `json:"name"`
	About       string   `json:"about"`
	Cgroup      string   `json:"cgroup"`
	Repeats     int      `json:"repeats"`
	Contestants []string `json:"contestants"`
	Fastest     float64  `json:"fastest_bytes_per_s,omitempty"` // unthrottled
	Samples     []sample `json:"samples"`
	scenario    scenario
}

// toBench is the selection: only is "" (all) or names, separated by commas.
func toBench(only string, repeats int) (all []*benched, err error) {
	asked := strings.FieldsFunc(only, func(r rune) bool { return r == ',' || r == ' ' })
	unknown := slices.Clone(asked)
	for _, v := range []struct {
		cgroup    string
		scenarios []scenario
	}{{"v2", scenarios()}, {"v1", scenariosV1()}} {
		for _, sc := range v.scenarios {
			if len(asked) > 0 && !slices.Contains(asked, sc.name) {
				continue
			}
			unknown = slices.DeleteFunc(unknown, func(name string) bool { return name == sc.name })
			d := &benched{Name: sc.name, About: sc.about, Cgroup: v.cgroup, Repeats: repeats, scenario: sc}
			if sc.repeats > 0 {
				d.Repeats = min(d.Repeats, sc.repeats)
			}
			for _, c := range sc.contestants {
				d.Contestants = append(d.Contestants, c.name)
			}
			all = append(all, d)
		}
	}
	if len(unknown) > 0 {
		return nil, fmt.Errorf("there is no scenario %s", strings.Join(unknown, ", "))
	}
	return all, nil
}

// onBoot boots one guest and runs everything selected for a version of cgroups in
// it.
func onBoot(t *testing.T, cgroup string, all []*benched) {
	all = slices.DeleteFunc(slices.Clone(all), func(d *benched) bool { return d.Cgroup != cgroup })
	if len(all) == 0 {
		return
	}
	g, err := Boot(t.Context(), labOptionsFor(t, "two", cgroup))
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	readyToMove(t, g)
	mustRun(t, g, "homenode-load", "control", "on")
	for _, d := range all {
		begin := time.Now()
		(&bench{t: t, g: g}).of(d)
		fmt.Print(d.table())
		t.Logf("%s on %s took %.0f s, %d runs", d.Name, cgroup, time.Since(begin).Seconds(), len(d.Samples))
	}
}

// TestBenchMigrate compares homenode's moves with other tools' (make bench-migrate):
// what stays behind, how long a move takes, and what a victim notices. Results are
// written even if a later scenario fails.
func TestBenchMigrate(t *testing.T) {
	dir := os.Getenv("HOMENODE_BENCH")
	if dir == "" {
		t.Skip("HOMENODE_BENCH is not set to the folder for the results: this is a measurement of make bench-migrate")
	}
	repeats, err := strconv.Atoi(os.Getenv("HOMENODE_BENCH_REPEATS"))
	if err != nil || repeats < 1 {
		t.Fatalf("HOMENODE_BENCH_REPEATS is %q: want a number of runs", os.Getenv("HOMENODE_BENCH_REPEATS"))
	}
	all, err := toBench(os.Getenv("HOMENODE_BENCH_ONLY"), repeats)
	if err != nil {
		t.Fatalf("HOMENODE_BENCH_ONLY: %v", err)
	}
	defer verdictOf(t, dir, all)
	for _, cgroup := range []string{"v2", "v1"} {
		t.Run(cgroup, func(t *testing.T) { onBoot(t, cgroup, all) })
	}
}

// verdictOf judges, writes and prints.
func verdictOf(t *testing.T, dir string, all []*benched) {
	targets := judgeMigration(all)
	fmt.Print(targetTable(targets))
	data, err := json.MarshalIndent(map[string]any{"schema": 3, "how": "modelled (lab)", "machine": "lab two", "date": time.Now().UTC(),
		"scenarios": all, "targets": targets}, "", " ")
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "migrate.json"), append(data, '\n'), 0o644)
	}
	if err != nil {
		t.Error(err)
	}
	if n := unmet(targets); n > 0 {
		t.Errorf("targets unmet: %d", n)
	}
}
