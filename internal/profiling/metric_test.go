// SPDX-License-Identifier: Apache-2.0

package profiling

import (
	"math"
	"strings"
	"testing"
)

func TestParseMetric(t *testing.T) {
	for text, want := range map[string]Metric{
		"time": {Kind: Time}, "output": {Kind: Output}, "ipc": {Kind: IPC},
		"command:redis-cli info": {Kind: Command, Arg: "redis-cli info"}, "file:/run/x:y": {Kind: File, Arg: "/run/x:y"},
		"http://127.0.0.1:9/m": {Kind: URL, Arg: "http://127.0.0.1:9/m"}, "http://[::1]:9/m": {Kind: URL, Arg: "http://[::1]:9/m"}, "http://localhost/": {Kind: URL, Arg: "http://localhost/"},
	} {
		got, err := ParseMetric(text)
		if err != nil || got != want || got.String() != text {
			t.Errorf("%s: %+v %q, %v", text, got, got.String(), err)
		}
	}
	for text, want := range map[string]string{
		"": "want time", "times": "want time", "time:": "want time", "command:": "want time", "file: ": "want time", "https://127.0.0.1/": "want time",
	} {
		if _, err := ParseMetric(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

func TestNumber(t *testing.T) {
	for _, c := range []struct {
		pattern, text string
		want          float64
		bad           string
	}{
		{"", "done: 12 of 3.5e2 ops", 350, ""},
		{"", "-4", -4, ""},
		{`ops (\d+)`, "ops 7\nother 9", 7, ""},
		{`\d+`, "a 5 6", 5, ""},
		{"", "nothing here", 0, "no number"},
		{"", "", 0, "no number"},
		{"", "ops NaN", 0, "must be a number"},
		{"", "ops: +Inf", 0, "must be a number"},
		{`ops (\S+)`, "ops NaN", 0, "must be a number"},
		{`ops (\d+)`, "x", 0, "matches --pattern"},
		{`ops (\S+)`, "ops 1e999", 0, "no number"},
	} {
		got, err := Metric{Pattern: c.pattern}.Number(c.text)
		if c.bad == "" && (err != nil || got != c.want) || c.bad != "" && (err == nil || !strings.Contains(err.Error(), c.bad) || got != 0) {
			t.Errorf("%q in %q: %v, %v; want %v %q", c.pattern, c.text, got, err, c.want, c.bad)
		}
	}
}

func FuzzNumber(f *testing.F) {
	f.Add("", "ops 12")
	f.Add(`(\d+)`, "x1")
	f.Fuzz(func(t *testing.T, pattern, text string) {
		v, err := Metric{Pattern: pattern}.Number(text)
		if err != nil && v != 0 || math.IsNaN(v) || math.IsInf(v, 0) {
			t.Errorf("%v, %v", v, err)
		}
	})
}

func TestSpeed(t *testing.T) {
	for _, c := range []struct {
		m    Metric
		all  []Reading
		want float64
		bad  string
	}{
		{Metric{}, []Reading{{0, 2}, {1, 4}}, 3, ""},
		{Metric{LowerIsBetter: true}, []Reading{{0, 0.25}}, 4, ""},
		{Metric{Counter: true}, []Reading{{1, 100}, {2, 7}, {3, 300}}, 100, ""},
		{Metric{Counter: true}, []Reading{{1, 100}, {3, 100}}, 0, "did not grow"},
		{Metric{Counter: true}, []Reading{{1, 100}, {3, 90}}, 0, "went down"},
		{Metric{Counter: true}, []Reading{{1, 100}}, 0, "two readings"},
		{Metric{}, nil, 0, "not read once"},
		{Metric{}, []Reading{{0, 0}}, 0, "above 0"},
		{Metric{LowerIsBetter: true}, []Reading{{0, 0}}, 0, "above 0"},
		{Metric{}, []Reading{{0, -1}}, 0, "above 0"},
	} {
		got, err := c.m.Speed(c.all)
		if c.bad == "" && (err != nil || got != c.want) || c.bad != "" && (err == nil || !strings.Contains(err.Error(), c.bad)) {
			t.Errorf("%+v of %v: %v, %v; want %v %q", c.m, c.all, got, err, c.want, c.bad)
		}
	}
	if v, err := (Metric{Kind: Time}).SpeedOf(0.5, "x"); v != 2 || err != nil {
		t.Errorf("time: %v, %v", v, err)
	}
	if v, err := (Metric{Kind: Output}).SpeedOf(0.5, "30 ops"); v != 30 || err != nil {
		t.Errorf("output: %v, %v", v, err)
	}
}

func TestMetricCheck(t *testing.T) {
	for _, c := range []struct {
		m    Metric
		live bool
		bad  string
	}{
		{Metric{Kind: Time}, false, ""}, {Metric{Kind: Time}, true, "running workload needs"}, {Metric{Kind: IPC}, true, ""}, {Metric{Kind: IPC}, false, "for --workload"},
		{Metric{Kind: File, Arg: "/x", Counter: true, LowerIsBetter: true}, true, "one of them"}, {Metric{Kind: Time, Counter: true}, false, "no text"},
		{Metric{Kind: Output, Counter: true}, false, "once"}, {Metric{Kind: File, Arg: "/x", Pattern: "("}, true, "no regular expression"},
	} {
		if err := c.m.Check(c.live); (err == nil) != (c.bad == "") || err != nil && !strings.Contains(err.Error(), c.bad) {
			t.Errorf("%+v, live %v: %v, want %q", c.m, c.live, err, c.bad)
		}
	}
}
