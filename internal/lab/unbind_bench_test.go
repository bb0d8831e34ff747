// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"homenode/internal/window"
)

// dayRun is the result of a day under one arm.
type dayRun struct {
	Arm    string `json:"arm"`
	Repeat int    `json:"repeat"`
	// Unbound is the paper's unbind ratio: the share of the windows of approved replicas
	// after the warm-up in which they were not bound. null if there are none.
	Unbound *float64 `json:"unbind_ratio"`
	Misses  float64  `json:"sla_misses"` // of hours of replicas
	// Rules counts decisions of the day, and WarmRules those of the warm-up.
	Rules     map[string]int     `json:"decisions"`
	WarmRules map[string]int     `json:"decisions_warm_up"`
	Windows   int                `json:"windows"`
	Length    float64            `json:"window_seconds"` // mean
	Longest   float64            `json:"window_seconds_max"`
	Top       float64            `json:"cpu_top"`       // share of the promised CPUs, of services that do not burst
	Burst     float64            `json:"cpu_burst_top"` // the same of services that burst
	NodeTop   float64            `json:"node_busy_top"` // mean of the nodes
	AgentCPUs float64            `json:"agent_cpus"`
	P99       map[string]float64 `json:"p99_mean_us"` // by service
	Hours     []dayHourSeen      `json:"hours"`
	p99       map[string]map[int]float64
}

// dayHourSeen is one hour: the replicas' share of their promised CPUs, and how many of
// six were not bound, as the average of its windows.
type dayHourSeen struct {
	Hour    int                `json:"hour"`
	CPU     map[string]float64 `json:"cpu_of_promised"`
	Nodes   []float64          `json:"node_busy"`
	Unbound float64            `json:"unbound_replicas"`
	P99     map[string]float64 `json:"p99_us"`
}

// TestBenchUnbind is MAO's Fig. 6 in the lab (scripts/bench-unbind.sh):
// HOMENODE_BENCH_UNBIND_LAB names the file of results. Recordings are next to it. In
// each repeat B's unbind ratio must be at most half of A's, and B must not miss the
// service level more often than A does.
func TestBenchUnbind(t *testing.T) {
	file, repeats := benchFile(t, "HOMENODE_BENCH_UNBIND_LAB", "make bench-unbind")
	g := guest(t, "two", "v2")
	var all []dayRun
	for repeat := range repeats {
		arms := []string{"none", "A", "B"} // none first: it sets the service level, and is yesterday
		if repeat%2 == 1 {
			arms[1], arms[2] = arms[2], arms[1]
		}
		if only := os.Getenv("HOMENODE_BENCH_ARMS"); only != "" {
			arms = strings.Split(only, ",")
		}
		var runs []dayRun
		for _, arm := range arms {
			r, err := dayOnce(t.Context(), g, arm, repeat, strings.TrimSuffix(file, ".json"))
			if err != nil {
				t.Fatalf("repeat %d, %s: %v", repeat+1, arm, err)
			}
			runs = append(runs, r)
			dayLevel(runs)
			dayTell(runs[len(runs)-1])
			dayWrite(t, file, append(slices.Clone(all), runs...))
		}
		all = append(all, runs...)
	}
	for _, wrong := range dayJudge(all) {
		t.Error(wrong)
	}
}

func dayWrite(t *testing.T, file string, all []dayRun) {
	t.Helper()
	writeResults(t, file, map[string]any{"schema": 2, "how": "modelled (lab), shape two", "runs": all})
}

// dayOnce runs one arm's day.
func dayOnce(ctx context.Context, g *Guest, arm string, repeat int, files string) (r dayRun, err error) {
	ctx, cancel := g.Within(ctx, 10*time.Minute)
	defer cancel()
	r = dayRun{Arm: arm, Repeat: repeat + 1}
	all := daySchedule(repeat + 1)
	if err := g.Put(ctx, "/tmp/day.yaml", 0o644, []byte(dayConfig(arm))); err != nil {
		return r, err
	}
	out, err := g.Run(ctx, "sh", "-c", dayScript(all, arm))
	if err != nil || out.Exit != 0 {
		return r, fmt.Errorf("exit %d, %v: %.1000s", out.Exit, err, out.Stderr)
	}
	in := sections(out.Stdout)
	if err := errors.Join(r.agent(in), r.latencies(in)); err != nil {
		return r, err
	}
	from, err1 := strconv.ParseInt(strings.TrimSpace(in["from"]), 10, 64)
	to, err2 := strconv.ParseInt(strings.TrimSpace(in["to"]), 10, 64)
	record, err3 := g.Fetch(ctx, "/tmp/day/record.jsonl")
	log, err4 := g.Fetch(ctx, "/tmp/day/state/decisions.jsonl")
	if arm == "none" {
		log, err4 = nil, nil // this arm decides nothing
	}
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		return r, err
	}
	if err := errors.Join(dayKeep(fmt.Sprintf("%s-%s-%d.jsonl.gz", files, arm, repeat+1), record),
		dayKeep(fmt.Sprintf("%s-%s-%d.decisions.jsonl.gz", files, arm, repeat+1), log)); err != nil {
		return r, err
	}
	return r, errors.Join(r.windows(record, all, time.Unix(from, 0), time.Unix(to, 0)), r.decided(log, time.Unix(from, 0)))
}

// dayKeep keeps a recording for homenode replay.
func dayKeep(file string, data []byte) error {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, err := z.Write(data)
	return errors.Join(err, z.Close(), os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, b.Bytes(), 0o644))
}

// agent is the agent's share of the CPUs.
func (r *dayRun) agent(in map[string]string) error {
	var ticks [2]float64
	for i, name := range []string{"busy0", "busy1"} {
		for _, f := range strings.Fields(in[name]) {
			n, err := strconv.ParseFloat(f, 64)
			if err != nil {
				return fmt.Errorf("read the agent's CPU time: %w", err)
			}
			ticks[i] += n
		}
	}
	r.AgentCPUs = (ticks[1] - ticks[0]) / 100 / (dayHours * dayHour)
	return nil
}

// latencies are those of the servers that always run, by hour.
func (r *dayRun) latencies(in map[string]string) error {
	r.p99 = map[string]map[int]float64{}
	for _, group := range dayReplicas() {
		var report struct {
			Phases []struct {
				Phase   int
				Latency struct {
					Count float64
					P99   float64
				} `json:"latency_us"`
			}
		}
		if err := json.Unmarshal([]byte(in["report "+group]), &report); err != nil {
			return fmt.Errorf("read report of %s: %w: %.300q", group, err, in["report "+group])
		}
		r.p99[group] = map[int]float64{}
		for _, p := range report.Phases {
			if hour := p.Phase - daysFirst; hour >= 0 && hour < dayHours && p.Latency.Count > 0 {
				r.p99[group][hour] = p.Latency.P99
			}
		}
		if len(r.p99[group]) < dayHours*3/4 {
			return fmt.Errorf("%s answered in %d of %d hours only", group, len(r.p99[group]), dayHours)
		}
	}
	return nil
}

// windows reads the agent's recording.
func (r *dayRun) windows(record []byte, all []dayServer, from, to time.Time) error {
	rec, err := window.ReadRecording(bytes.NewReader(record))
	if err != nil {
		return err
	}
	for h := range dayHours {
		r.Hours = append(r.Hours, dayHourSeen{Hour: h, CPU: map[string]float64{}, Nodes: make([]float64, 2), P99: map[string]float64{}})
	}
	count, unbound, approved := make([]float64, dayHours), 0.0, 0.0
	for _, w := range rec.Windows {
		if w.At.Before(from) || w.At.After(to) {
			continue
		}
		hour := min(int(w.At.Sub(from).Seconds()/dayHour), dayHours-1)
		r.Windows++
		r.Length += w.Length.Seconds()
		r.Longest = max(r.Longest, w.Length.Seconds())
		count[hour]++
		u, a := r.Hours[hour].see(w)
		unbound, approved = unbound+u, approved+a
	}
	if r.Windows < dayHours {
		return fmt.Errorf("%d windows in a day of %d s: the agent does not keep up", r.Windows, dayHours*dayHour)
	}
	r.Length /= float64(r.Windows)
	if approved > 0 {
		ratio := unbound / approved
		r.Unbound = &ratio
	}
	for h := range r.Hours {
		r.Hours[h].divide(count[h])
		for group, at := range r.p99 {
			if p99, ok := at[h]; ok {
				r.Hours[h].P99[group] = p99
			}
		}
	}
	r.top(all)
	return nil
}

// see adds a window to an hour.
func (h *dayHourSeen) see(w window.Window) (unbound, approved float64) {
	for _, wl := range w.Workloads {
		group := path.Base(wl.ID)
		if promised := dayPromised(group); promised > 0 {
			h.CPU[group] += wl.CPU.Or(0) / promised
		} else {
			h.CPU[group] += wl.CPU.Or(0)
		}
		if wl.Approved {
			approved++
			if !wl.Binding.OursMems || !wl.Binding.OursCPUs {
				unbound++
			}
		}
	}
	for i, n := range w.Nodes {
		if i < len(h.Nodes) {
			h.Nodes[i] += n.CPUBusy.Or(0) / float64(n.CPUs.Len())
		}
	}
	h.Unbound += unbound
	return unbound, approved
}

func (h *dayHourSeen) divide(windows float64) {
	if windows == 0 {
		return
	}
	for group := range h.CPU {
		h.CPU[group] /= windows
	}
	for i := range h.Nodes {
		h.Nodes[i] /= windows
	}
	h.Unbound /= windows
}

// top is the services' use in the hours of the day's top.
func (r *dayRun) top(all []dayServer) {
	var quiet, burst, nodes []float64
	for _, h := range r.Hours {
		if level, _ := dayCurve(h.Hour); level < 1 || len(h.CPU) == 0 {
			continue
		}
		nodes = append(nodes, h.Nodes...)
		for _, group := range dayReplicas() {
			if dayBursts(all, group, h.Hour) {
				burst = append(burst, h.CPU[group])
			} else {
				quiet = append(quiet, h.CPU[group])
			}
		}
	}
	r.Top, r.Burst, r.NodeTop = dayMean(quiet), dayMean(burst), dayMean(nodes)
}

func dayMean(all []float64) float64 {
	sum := 0.0
	for _, v := range all {
		sum += v
	}
	return sum / float64(max(1, len(all)))
}

// decided counts rules of the decision log.
func (r *dayRun) decided(log []byte, from time.Time) error {
	r.Rules, r.WarmRules = map[string]int{}, map[string]int{}
	for line := range bytes.Lines(log) {
		var e struct {
			At     time.Time
			Reason struct{ Rule string }
		}
		if err := json.Unmarshal(line, &e); err != nil {
			return fmt.Errorf("read decision log: %w: %.200q", err, line)
		}
		if e.At.Before(from) {
			r.WarmRules[e.Reason.Rule]++
		} else {
			r.Rules[e.Reason.Rule]++
		}
	}
	return nil
}

// dayLevel checks the last of a repeat's runs against the service level of its first
// run: 1.5 times the mean p99 of the service's replicas and hours.
func dayLevel(runs []dayRun) {
	last := &runs[len(runs)-1]
	last.P99 = last.meanP99()
	limits := runs[0].meanP99()
	missed, of := 0.0, 0.0
	for group, hours := range last.p99 {
		s, _ := dayServiceOf(group)
		of += dayHours
		missed += dayHours - float64(len(hours)) // in those hours nothing was answered
		for _, p99 := range hours {
			if p99 > dayLimit*limits[s.name] {
				missed++
			}
		}
	}
	last.Misses = missed / of
}

func (r *dayRun) meanP99() map[string]float64 {
	all := map[string][]float64{}
	for group, hours := range r.p99 {
		s, _ := dayServiceOf(group)
		for _, h := range dayHoursOf(hours) {
			all[s.name] = append(all[s.name], hours[h])
		}
	}
	out := map[string]float64{}
	for service, values := range all {
		out[service] = dayMean(values)
	}
	return out
}

func dayHoursOf(hours map[int]float64) (all []int) {
	for h := range hours {
		all = append(all, h)
	}
	slices.Sort(all)
	return all
}

func dayTell(r dayRun) {
	unbound := "-"
	if r.Unbound != nil {
		unbound = fmt.Sprintf("%.4f", *r.Unbound)
	}
	fmt.Printf("bench-unbind:       repeat %d, %-4s unbound %s, missed %.4f, decisions %v (warm-up %v)\n", r.Repeat, r.Arm, unbound, r.Misses, r.Rules, r.WarmRules)
	fmt.Printf("bench-unbind:       %d windows of %.2f s, at the top %.2f of what was promised, in bursts %.2f, nodes %.2f busy, agent %.2f CPUs, longest window %.1f s\n",
		r.Windows, r.Length, r.Top, r.Burst, r.NodeTop, r.AgentCPUs, r.Longest)
}

// dayJudge compares each repeat's B with its A.
func dayJudge(all []dayRun) (wrong []string) {
	arms := map[string]dayRun{}
	for _, r := range all {
		arms[r.Arm+strconv.Itoa(r.Repeat)] = r
	}
	say := func(met bool, format string, args ...any) {
		word, text := "ok   ", fmt.Sprintf(format, args...)
		if !met {
			word = "UNMET"
			wrong = append(wrong, text)
		}
		fmt.Printf("bench-unbind: %s %s\n", word, text)
	}
	for repeat := 1; ; repeat++ {
		key := strconv.Itoa(repeat)
		none, ok := arms["none"+key]
		if !ok {
			if repeat == 1 {
				say(false, "no repeat was compared")
			}
			return wrong
		}
		say(none.Top > 0.75 && none.Top < 0.95, "repeat %d: the top of the day takes %.2f of what was promised, want 0.75 to 0.95", repeat, none.Top)
		a, okA := arms["A"+key]
		b, okB := arms["B"+key]
		if !okA || !okB || a.Unbound == nil || b.Unbound == nil {
			say(false, "repeat %d: A or B did not run, or had nothing approved", repeat)
			continue
		}
		if *a.Unbound <= 0 || a.Rules["mao.unbind.A"] == 0 {
			say(false, "repeat %d: A unbinds nothing: there is nothing to compare", repeat)
			continue
		}
		say(*b.Unbound <= *a.Unbound/2, "repeat %d: unbind ratio of B %.4f is %.2f times A's, %.4f, limit 0.5", repeat, *b.Unbound, *b.Unbound / *a.Unbound, *a.Unbound)
		say(b.Misses <= a.Misses, "repeat %d: service level missed by B %.4f, by A %.4f, by Linux %.4f: B no more than A", repeat, b.Misses, a.Misses, none.Misses)
	}
}

func TestDecisionUnbindJudge(t *testing.T) {
	run := func(arm string, unbound, misses float64, unbinds int) dayRun {
		return dayRun{Arm: arm, Repeat: 1, Unbound: &unbound, Misses: misses, Rules: map[string]int{"mao.unbind.A": unbinds}, Top: 0.85}
	}
	none := run("none", 0, 0.01, 0)
	for about, c := range map[string]struct {
		runs []dayRun
		want string
	}{
		"nothing":            {nil, "no repeat"},
		"without none":       {[]dayRun{run("A", 0.1, 0.02, 3), run("B", 0.05, 0.02, 0)}, "no repeat"},
		"met":                {[]dayRun{none, run("A", 0.1, 0.02, 3), run("B", 0.05, 0.02, 0)}, ""},
		"unbound too long":   {[]dayRun{none, run("A", 0.1, 0.02, 3), run("B", 0.06, 0.02, 0)}, "limit 0.5"},
		"misses more":        {[]dayRun{none, run("A", 0.1, 0.02, 3), run("B", 0.01, 0.03, 0)}, "no more than A"},
		"nothing to compare": {[]dayRun{none, run("A", 0, 0.02, 0), run("B", 0, 0.02, 0)}, "nothing to compare"},
		"an arm is missing":  {[]dayRun{none, run("A", 0.1, 0.02, 3)}, "did not run"},
	} {
		got := strings.Join(dayJudge(c.runs), "; ")
		if (c.want == "") != (got == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", about, got, c.want)
		}
	}
}
