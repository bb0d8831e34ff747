// SPDX-License-Identifier: Apache-2.0

package profiling

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// A query has one number for one measurement. With $for in it, as in rate(requests_total[$for]), it
// is asked once, at the end: $for is how long was measured. Any other query is asked for at many
// moments of the measurement, and the number is their mean.

// forWord is what stands for the measurement's length.
const forWord = "$for"

// lookBack finds a range of a query: [5m] or [1h30m:1m].
var lookBack = regexp.MustCompile(`\[\s*((?:\d+(?:ms|[smhdwy]))+)\s*[\]:]`)

var promUnits = map[string]time.Duration{
	"ms": time.Millisecond, "s": time.Second, "m": time.Minute, "h": time.Hour, "d": 24 * time.Hour, "w": 7 * 24 * time.Hour, "y": 365 * 24 * time.Hour,
}

var promPart = regexp.MustCompile(`(\d+)(ms|[smhdwy])`)

func promDuration(text string) (d time.Duration) {
	for _, part := range promPart.FindAllStringSubmatch(text, -1) {
		n, err := strconv.ParseFloat(part[1], 64)
		if err != nil {
			return math.MaxInt64
		}
		if sum := float64(d) + n*float64(promUnits[part[2]]); sum < math.MaxInt64 {
			d = time.Duration(sum)
		} else {
			return math.MaxInt64
		}
	}
	return d
}

// elsewhen finds what moves a query to another time, and a range without a unit.
var elsewhen = regexp.MustCompile(`\boffset\b|@|\[\s*\d+\s*[\]:]`)

// CheckLookBack refuses a query that looks into another state: further back than the warm-up from
// a moment of the measurement, or with $for than the measurement from its end.
func (m Metric) CheckLookBack(warm, measured time.Duration) error {
	if m.Kind != PromQL {
		return nil
	}
	query := quoted.ReplaceAllString(m.Arg, `""`)
	if found := elsewhen.FindString(query); found != "" {
		return fmt.Errorf("--metric prometheus: %q in the query: it must be about the time that is measured: leave it out, or give a range its unit", found)
	}
	most, flag := warm, "--warm-up"
	if m.AtEnd() {
		most, flag = measured, "--for"
	}
	for _, found := range lookBack.FindAllStringSubmatch(query, -1) {
		if promDuration(found[1]) > most {
			return fmt.Errorf("--metric prometheus: the query looks back %s, which is longer than %s %v: write [%s], which is as long as is measured, or give a longer %s", found[1], flag, most, forWord, flag)
		}
	}
	return nil
}

// quoted finds the texts of a query, such as the values of labels.
var quoted = regexp.MustCompile(`"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|` + "`[^`]*`")

// AtEnd says that the query is asked once, at the end.
func (m Metric) AtEnd() bool { return strings.Contains(m.Arg, forWord) }

// Query is the query for a measurement of this length.
func (m Metric) Query(measured time.Duration) string {
	return strings.ReplaceAll(m.Arg, forWord, fmt.Sprintf("%dms", max(1, measured.Milliseconds())))
}

// answer is what Prometheus's HTTP API answers to query and query_range.
type answer struct {
	Status string `json:"status"`
	Error  string `json:"error"`
	Data   struct {
		Type   string          `json:"resultType"`
		Result json.RawMessage `json:"result"`
	} `json:"data"`
}

// point is a time and a number as text.
type point [2]json.RawMessage

type series struct {
	Value  *point  `json:"value"`
	Values []point `json:"values"`
}

// Points reads what Prometheus answers to the query: one series, of one point or more.
func (m Metric) Points(data []byte) (all []Reading, err error) {
	var a answer
	if err := json.Unmarshal(data, &a); err != nil {
		return nil, fmt.Errorf("metric prometheus: the answer is not from a Prometheus: %w", err)
	}
	if a.Status != "success" {
		return nil, fmt.Errorf("metric prometheus: %.300s", a.Error)
	}
	var points []point
	switch a.Data.Type {
	case "scalar":
		var one point
		err = json.Unmarshal(a.Data.Result, &one)
		points = []point{one}
	case "vector", "matrix":
		var found []series
		if err = json.Unmarshal(a.Data.Result, &found); err != nil {
			break
		}
		switch {
		case len(found) == 0:
			return nil, fmt.Errorf("metric prometheus: %.200q finds nothing: it stopped reporting, has another name, or is scraped too seldom: --warm-up must be longer than one scrape, and --for than two", m.Arg)
		case len(found) > 1:
			return nil, fmt.Errorf("metric prometheus: %.200q finds %d series, want one: add them up with sum(), or name one by its labels", m.Arg, len(found))
		}
		if points = found[0].Values; found[0].Value != nil {
			points = []point{*found[0].Value}
		}
	default:
		return nil, fmt.Errorf("metric prometheus: %.200q is a %.20q, want a number", m.Arg, a.Data.Type)
	}
	for _, p := range points {
		if err != nil {
			break
		}
		var r Reading
		if r, err = m.reading(p); err == nil {
			all = append(all, r)
		}
	}
	if err == nil && len(all) == 0 {
		err = errors.New("the answer has no number")
	}
	if err != nil {
		return nil, fmt.Errorf("metric prometheus: %w", err)
	}
	return all, nil
}

func (m Metric) reading(p point) (r Reading, err error) {
	var text string
	if err = errors.Join(json.Unmarshal(p[0], &r.At), json.Unmarshal(p[1], &text)); err != nil {
		return r, err
	}
	if r.Value, err = strconv.ParseFloat(text, 64); err != nil {
		return r, err
	}
	if math.IsNaN(r.Value) || math.IsInf(r.Value, 0) {
		return r, fmt.Errorf("%.200q is %s: a workload's speed must be a number", m.Arg, text)
	}
	return r, nil
}

// leastReported is the share of a measurement's moments for which there must be a number.
const leastReported = 0.8

// CheckReported refuses a series that has stopped in the middle.
func CheckReported(points, asked int) error {
	if float64(points) < leastReported*float64(asked) {
		return fmt.Errorf("metric prometheus: it has a number at %d of %d moments of the measurement: it stopped reporting", points, asked)
	}
	return nil
}
