// SPDX-License-Identifier: Apache-2.0

package profiling

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
)

// MetricKind is where a workload's number comes from.
type MetricKind string

// The kinds of metrics.
const (
	Time    MetricKind = "time"    // 1 / the time a program takes
	Output  MetricKind = "output"  // a number that a program prints
	Command MetricKind = "command" // a number that another command prints
	File    MetricKind = "file"
	URL     MetricKind = "url"
	IPC     MetricKind = "ipc" // instructions per cycle; spinning counts as work
	PromQL  MetricKind = "prometheus"
)

// MetricHelp lists the forms of ParseMetric.
const MetricHelp = "time, output, ipc, command:LINE, file:PATH, http://127.0.0.1:PORT/PATH or prometheus:QUERY"

// Metric is a number that says how fast a workload is.
type Metric struct {
	Kind MetricKind `json:"kind"`
	Arg  string     `json:"arg,omitempty"` // LINE, PATH, the URL, QUERY
	// Server is the Prometheus that answers QUERY.
	Server string `json:"prometheus_url,omitempty"`
	// Pattern is where the number is: the first group of a regular expression. "": the last
	// number in the text.
	Pattern string `json:"pattern,omitempty"`
	Counter bool   `json:"counter,omitempty"` // it counts up: its growth per second is the speed
	// LowerIsBetter: a latency; the speed is 1 / the number.
	LowerIsBetter bool `json:"lower_is_better,omitempty"`
}

// ParseMetric reads one of MetricHelp.
func ParseMetric(text string) (Metric, error) {
	kind, arg, has := strings.Cut(text, ":")
	switch k := MetricKind(kind); {
	case !has && (k == Time || k == Output || k == IPC):
		return Metric{Kind: k}, nil
	case has && (k == Command || k == File || k == PromQL) && strings.TrimSpace(arg) != "":
		return Metric{Kind: k, Arg: arg}, nil
	case has && kind == "http":
		return Metric{Kind: URL, Arg: text}, nil
	}
	return Metric{}, fmt.Errorf("metric %.80q: want %s", text, MetricHelp)
}

// Check refuses what does not go together. live: a workload that runs already.
func (m Metric) Check(live bool) error {
	if _, err := regexp.Compile(m.Pattern); err != nil {
		return fmt.Errorf("--pattern %.80q: it is no regular expression: %w", m.Pattern, err)
	}
	own := m.Kind == Time || m.Kind == Output
	switch {
	case live && own:
		return fmt.Errorf("--metric %s: that is for a command after --: a running workload needs ipc, command:, file:, http:// or prometheus:", m.Kind)
	case m.Kind == PromQL && (m.Pattern != "" || m.Counter):
		return errors.New("--metric prometheus: the query says what the number is: leave out --pattern and --counter; rate(NAME[$for]) is a counter's growth")
	case m.Kind != PromQL && m.Server != "":
		return errors.New("--prometheus: that is for --metric prometheus:QUERY")
	case !live && m.Kind == IPC:
		return errors.New("--metric ipc: that is for --workload, whose events are counted")
	case m.Kind == Time && (m.Pattern != "" || m.Counter || m.LowerIsBetter), m.Kind == IPC && (m.Pattern != "" || m.Counter || m.LowerIsBetter):
		return fmt.Errorf("--metric %s: it is no text: leave out --pattern, --counter and --lower-is-better", m.Kind)
	case m.Kind == Output && m.Counter:
		return errors.New("--counter: a command prints its output once: leave it out")
	case m.Counter && m.LowerIsBetter:
		return errors.New("--counter and --lower-is-better: a number that grows with the work is better when it grows faster: give one of them")
	}
	return nil
}

// Ends says that a program ends by itself, and is measured from its start.
func (m Metric) Ends() bool { return m.Kind == Time || m.Kind == Output }

// MaxText bounds a metric's text, bytes.
const MaxText = 1 << 20

var number = regexp.MustCompile(`[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|[-+]?\b(?:[Ii]nf|NaN|nan)\b`)

// Number finds the metric's number in a text.
func (m Metric) Number(text string) (float64, error) {
	found := ""
	if m.Pattern != "" {
		re, err := regexp.Compile(m.Pattern)
		if err != nil {
			return 0, err
		}
		groups := re.FindStringSubmatch(text)
		if groups == nil {
			return 0, fmt.Errorf("metric: nothing in %.80q matches --pattern %.80q", text, m.Pattern)
		}
		found = strings.TrimSpace(groups[min(1, len(groups)-1)])
	} else if all := number.FindAllString(text, -1); len(all) > 0 {
		found = all[len(all)-1]
	}
	v, err := strconv.ParseFloat(found, 64)
	switch {
	case err != nil:
		return 0, fmt.Errorf("metric: there is no number in %.80q", text)
	case math.IsNaN(v) || math.IsInf(v, 0):
		return 0, fmt.Errorf("metric: it is %s: a workload's speed must be a number", found)
	}
	return v, nil
}

// Reading is one reading of a metric, at a time on the measurement's clock.
type Reading struct {
	At    float64 // seconds
	Value float64
}

// Speed is that of the readings of one measurement.
func (m Metric) Speed(all []Reading) (float64, error) {
	if len(all) == 0 {
		return 0, errors.New("metric: it was not read once: give a longer --for")
	}
	speed := 0.0
	if first, last := all[0], all[len(all)-1]; m.Counter {
		if !(last.At > first.At) {
			return 0, errors.New("metric: a counter needs two readings: give a longer --for")
		}
		speed = (last.Value - first.Value) / (last.At - first.At)
	} else {
		for _, r := range all {
			speed += r.Value / float64(len(all))
		}
	}
	return m.speed(speed)
}

// speed is the number as a speed: above 0, more is faster.
func (m Metric) speed(v float64) (float64, error) {
	if m.LowerIsBetter {
		v = 1 / v
	}
	switch {
	case m.Counter && v == 0:
		return 0, fmt.Errorf("metric %s: the counter did not grow: it does not measure this workload, or the workload stands still", m)
	case m.Counter && v < 0:
		return 0, fmt.Errorf("metric %s: the counter went down: leave out --counter", m)
	case !(v > 0) || math.IsInf(v, 0):
		return 0, fmt.Errorf("metric %s: a speed of %v is none: want a number above 0", m, v)
	}
	return v, nil
}

// SpeedOf is the speed of a program's whole run.
func (m Metric) SpeedOf(seconds float64, output string) (float64, error) {
	if m.Kind == Time {
		return m.speed(1 / seconds)
	}
	v, err := m.Number(output)
	if err != nil {
		return 0, err
	}
	return m.speed(v)
}

// String is the metric as it was given.
func (m Metric) String() string {
	switch m.Kind {
	case Command, File, PromQL:
		return string(m.Kind) + ":" + m.Arg
	case URL:
		return m.Arg
	}
	return string(m.Kind)
}
