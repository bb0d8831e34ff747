// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"homenode/internal/action"
	"homenode/internal/set"
	"homenode/internal/unit"
	"homenode/internal/window"
	"homenode/internal/yamlfile"
)

func hostWith(ids ...string) CheckHost {
	return CheckHost{
		Workloads: func([]string) ([]string, error) { return ids, nil },
		Group: func(name string) error {
			if name == "adm" {
				return nil
			}
			return errors.New("unknown group")
		},
		Profile: func(file string) error { return fmt.Errorf("there is no file %s", file) },
	}
}

func texts(all []*yamlfile.Problem) (out []string) {
	for _, p := range all {
		out = append(out, fmt.Sprintf("%d %s: %s", p.Line, p.Path, p.Text))
	}
	return out
}

// Every mistake is found at once, in the order of the lines.
func TestCheckFindsAllErrors(t *testing.T) {
	c := CheckLayers(hostWith(), Layer{"c.yaml", []byte(strings.Join([]string{
		"perod: 1s", "period: 10", "cgroups: [demo/x]", "services:", "  - {name: a, approved: yes}", "mao: {target: 2, bind_after: 0}", "log: {level: degub}",
		"actuate: {horizon: -1s}", "api: {socket: /" + strings.Repeat("x", 110) + "}", "mode: observ"}, "\n"))})
	want := []string{
		"1 : unknown field \"perod\": did you mean period?",
		"2 period: it is 10: want a duration with its unit, such as 90s, 1.5h or 0s: did you mean 10s?",
		"3 cgroups[0]: \"demo/x\" is not a pattern of a cgroup path: want e.g. /demo/*: did you mean \"/demo/x\"?",
		"5 services[0].approved: it is \"yes\": want true or false: did you mean true?",
		"5 services[0]: it has no match: add match: PATTERN, such as /services/web-*",
		"6 mao.target: it is 2: it must be between 0 and 1",
		"6 mao.bind_after: it is 0: it must be at least 1",
		"7 log.level: it is \"degub\": want debug, info, warn or error: did you mean debug?",
		"8 actuate.horizon: it is -1s: it must be positive, e.g. 10m",
		"9 api.socket: its path has 111 bytes: want at most 101, which is what the kernel takes: use a shorter folder, such as /run/homenode",
		"10 mode: it is \"observ\": want act or observe: did you mean observe?",
	}
	if got := texts(c.Errors); !slices.Equal(got, want) || c.OK() {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	for _, e := range c.Errors {
		if !strings.Contains(e.Excerpt, "^") {
			t.Errorf("%s has no caret:\n%s", e.Text, e.Excerpt)
		}
	}
}

// What does not stop a start is a warning; a group that does not exist stops it.
func TestCheckWarns(t *testing.T) {
	c := CheckLayers(hostWith("/s/web-1", "/s/web-2", "/s/db"), Layer{"c.yaml", []byte(`profile: /none.json
cgroups: ["/s/*", "/empty/*"]
services:
  - {name: web, match: "/s/web-*", approved: true}
  - {name: noslash, match: "s/*"}
  - {name: elsewhere, match: "/other/x"}
  - {name: deeper, match: "/s/a/b"}
  - {name: later, match: "/s/q-*"}
  - {name: again, match: "/s/web-*"}
api: {group: adm}
`)})
	want := []string{
		"1 profile: there is no file /none.json: the agent starts without it, and costs are estimates",
		"5 services[1].match: it can never match: the path of a cgroup begins with a slash: did you mean \"/s/*\"?",
		"6 services[2].match: it can never match: no pattern of cgroups has such paths: add one there (a * does not match a slash)",
		"7 services[3].match: it can never match: no pattern of cgroups has such paths: add one there (a * does not match a slash)",
		"8 services[4].match: it matches no watched cgroup now",
		"9 services[5].match: it can never match: services[0] (web) has the same pattern, and the first rule that matches counts",
	}
	if got := texts(c.Warnings); !slices.Equal(got, want) || !c.OK() {
		t.Errorf("%v, got\n%s\nwant\n%s", texts(c.Errors), strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if !slices.Equal(c.Services[0].Workloads, []string{"/s/web-1", "/s/web-2"}) || *c.Watched != 3 || c.Others != 1 {
		t.Errorf("%+v", c)
	}
	c = CheckLayers(hostWith(), Layer{"c.yaml", []byte("cgroups: [\"/a/*\", \"/b/*\"]")})
	if got := texts(c.Warnings); len(got) != 1 || !strings.HasPrefix(got[0], "1 cgroups: no pattern matches") {
		t.Errorf("%v", got)
	}
	c = CheckLayers(hostWith(), Layer{"c.yaml", []byte("api: {group: homenode}")})
	if got := texts(c.Errors); len(got) != 1 || !strings.HasPrefix(got[0], "1 api.group: the group \"homenode\" does not exist: make it") {
		t.Errorf("%v", got)
	}
}

func anyMatch(pattern string, ids []string) bool {
	for _, id := range ids {
		if ok, _ := path.Match(pattern, id); ok {
			return true
		}
	}
	return false
}

// Patterns that no path can match both: a brute-force search over short paths agrees.
func TestMayBothMatch(t *testing.T) {
	parts := []string{"a", "b", "ab", "*", "a*", "*b", "?"}
	for _, x := range parts {
		for _, y := range parts {
			if mayBothMatch("/s/"+x, "/s/"+y) {
				continue
			}
			for _, id := range []string{"/s/a", "/s/b", "/s/ab", "/s/aab", "/s/bb"} {
				if anyMatch("/s/"+x, []string{id}) && anyMatch("/s/"+y, []string{id}) {
					t.Errorf("%q and %q both match %q", x, y, id)
				}
			}
		}
	}
}

// Where nothing is counted, the reason and the remedy are said; a first sample says nothing.
func TestCounting(t *testing.T) {
	of := func(v unit.Value[uint64]) window.Window {
		return window.Window{Workloads: []window.Workload{{LocalLoads: v, RemoteLoads: v}}}
	}
	for why, want := range map[string]string{
		"open perf cycles on cpu 0: no such file or directory (not supported)": "-cpu host,pmu=on",
		"open perf r1: permission denied (not permitted)":                      "CAP_PERFMON",
		"perf is switched off":                   "events: auto",
		"no such event in the arm table: it has": "hint faults",
		"something else":                         "homenode events",
	} {
		c, ok := countingOf(of(unit.UnknownValue[uint64](why)))
		if !ok || c.Counts || c.Why != why || !strings.Contains(c.Remedy, want) {
			t.Errorf("%s: %+v", why, c)
		}
	}
	if c, ok := countingOf(of(unit.Measured(uint64(0), "perf r1"))); !ok || !c.Counts || c.Why != "" {
		t.Errorf("%+v", c)
	}
	for _, w := range []window.Window{{}, of(unit.UnknownValue[uint64]("first sample of a counter is only a base"))} {
		if c, ok := countingOf(w); ok {
			t.Errorf("%+v", c)
		}
	}
}

// asked is a reader that says why it would not count, and how often it was asked.
type asked struct {
	Reader
	why   string
	times int
}

func (r *asked) WhyNotCounted() string { r.times++; return r.why }

// Without a workload the reader is asked once. A window with workloads has the last word,
// and what it said stays when they are gone.
func TestCountingWithoutWorkloads(t *testing.T) {
	var text bytes.Buffer
	r := &asked{why: "open perf cycles on cpu 0: no such file or directory (not supported)"}
	a := &Agent{reader: r, o: Options{Log: slog.New(slog.NewTextHandler(&text, nil))}}
	for range 3 {
		a.tellCounting(window.Window{At: time.Unix(1, 0)})
	}
	if c := a.status.Counting; c == nil || c.Counts || !strings.Contains(c.Remedy, "a PMU") || r.times != 1 || strings.Count(text.String(), "estimates only") != 1 {
		t.Errorf("%+v, asked %d times: %s", c, r.times, text.String())
	}
	counted := unit.Measured(uint64(0), "perf r1")
	for _, w := range []window.Window{{Workloads: []window.Workload{{LocalLoads: counted, RemoteLoads: counted}}}, {}} {
		if a.tellCounting(w); !a.status.Counting.Counts {
			t.Errorf("%+v", a.status.Counting)
		}
	}
	a = &Agent{reader: &asked{}, o: a.o} // it would count: nothing is said before it does
	for range 2 {
		a.tellCounting(window.Window{})
	}
	if a.status.Counting != nil {
		t.Errorf("%+v", a.status.Counting)
	}
}

// Where nothing counts, the log says so at once and then once a day, by the windows' clock. A
// clock that is set back does not make it silent.
func TestEstimatesOnlyIsRepeatedDaily(t *testing.T) {
	var text bytes.Buffer
	a := &Agent{o: Options{Log: slog.New(slog.NewTextHandler(&text, nil))}}
	estimated := window.Window{At: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), Workloads: []window.Workload{{LocalLoads: unit.UnknownValue[uint64]("no such event")}}}
	said := func() int { return strings.Count(text.String(), "estimates only") }
	for range 3 * 24 * 6 { // three days, a window every ten minutes
		a.tellCounting(estimated)
		estimated.At = estimated.At.Add(10 * time.Minute)
	}
	if said() != 3 {
		t.Errorf("in three days it is said %d times", said())
	}
	estimated.At = estimated.At.AddDate(0, 0, -30)
	if a.tellCounting(estimated); said() != 4 {
		t.Errorf("after the clock was set back it is said %d times", said())
	}
}

// A dry run's summary has the first decision on each workload, marks its gain as an
// estimate, and does not grow without end.
func TestSummary(t *testing.T) {
	bind := func(id string) action.Action {
		return action.Action{Kind: action.Bind, Workload: id, Nodes: set.FromNodes(1), Reason: action.Reason{Workload: id, Rule: "mao.bind", Numbers: []action.Number{
			{Name: "local_access_ratio", Value: unit.Measured(0.4, "perf")}, {Name: "expected_local_ratio", Value: unit.Measured(0.9, "shares")}}}}
	}
	var a Agent
	for i := range 3 * maxSummary {
		id := fmt.Sprintf("/s/%d", i)
		for range 2 {
			a.sum.add(window.Window{Workloads: []window.Workload{{ID: id, Service: "s"}}}, []action.Action{bind(id)})
		}
	}
	s := a.Summary()
	if len(s.Binds) != maxSummary || s.More != maxSummary || s.Actions["bind"] != 6*maxSummary || s.Binds[0].Service != "s" {
		t.Errorf("%d binds, %d more, %v", len(s.Binds), s.More, s.Actions)
	}
	gain, ok := s.Gain()
	if v, _ := gain.Get(); !ok || v < 0.499 || v > 0.501 || gain.How != unit.HowEstimated || s.Binds[0].Expected.How != unit.HowEstimated {
		t.Errorf("%+v, %+v", gain, s.Binds[0])
	}
	if _, ok := (Summary{}).Gain(); ok {
		t.Error("a gain of nothing")
	}
}
