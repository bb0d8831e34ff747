// SPDX-License-Identifier: Apache-2.0

package query

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"homenode/internal/schema"
	"homenode/internal/store"
)

// UsualTime is how far back a question looks that does not say.
const UsualTime = 24 * time.Hour

const (
	longest    = 10 * 366 * 24 * time.Hour // how far back a question may look
	mostOffset = 10_000_000
	mostName   = 4096 // PATH_MAX, and more than a host or a service has
)

// Parameters are those of a question in a URL, in the order of the help.
var Parameters = []struct{ Name, Kind, About string }{
	{"service", "string", "service; * is any text where the topic lists services"},
	{"host", "string", "host; * is any text where the topic lists hosts"},
	{"workload", "string", "cgroup path of a workload"},
	{"since", "string", "from when: a time ago such as 24h or 7d, or a moment such as 2026-01-02T15:04:05Z (default 24h)"},
	{"until", "string", "until when, not included: as since (default now)"},
	{"step", "string", "time between points of a history, such as 5m (default: some 200 points)"},
	{"sort", "string", "column to sort by; -COLUMN is the highest first"},
	{"most", "integer", "number of rows, at most (default 100)"},
	{"offset", "integer", "number of rows to leave out first"},
}

// Parse reads a question. A parameter that has no meaning is refused: a filter with a typing
// error would answer with everything.
func Parse(topic string, v url.Values, now time.Time) (store.Question, error) {
	q := store.Question{Topic: store.Topic(topic)}
	for name, values := range v {
		if !slices.ContainsFunc(Parameters, func(p struct{ Name, Kind, About string }) bool { return p.Name == name }) {
			return q, fmt.Errorf("unknown parameter %q", name)
		}
		if len(values) != 1 {
			return q, fmt.Errorf("%s is given %d times: want one", name, len(values))
		}
	}
	q.Service, q.Host, q.Workload = schema.Path(v.Get("service")), schema.Path(v.Get("host")), schema.Path(v.Get("workload"))
	var err error
	if q.From, err = moment("since", v.Get("since"), now, UsualTime); err != nil {
		return q, err
	}
	if q.Until, err = moment("until", v.Get("until"), now, 0); err != nil {
		return q, err
	}
	if text := v.Get("step"); text != "" {
		if q.Step, err = span(text); err != nil {
			return q, fmt.Errorf("step is %q: %w", text, err)
		}
	}
	if text := v.Get("sort"); text != "" {
		column, falling := strings.CutPrefix(text, "-")
		q.Sort, q.Ascending = column, !falling
	}
	for name, to := range map[string]*int{"most": &q.Most, "offset": &q.Offset} {
		if text := v.Get(name); text != "" {
			if *to, err = strconv.Atoi(text); err != nil {
				return q, fmt.Errorf("%s is %q: want a whole number", name, text)
			}
		}
	}
	if q.Most < 0 || q.Most > store.MostRows || q.Offset < 0 || q.Offset > mostOffset {
		return q, fmt.Errorf("rows %d to %d: want at most %d, and an offset from 0 to %d", q.Offset, q.Offset+q.Most, store.MostRows, mostOffset)
	}
	for _, text := range []string{q.Host, q.Workload, q.Service} {
		if len(text) > mostName {
			return q, fmt.Errorf("a name has %d bytes: want at most %d", len(text), mostName)
		}
	}
	if !q.From.Before(q.Until) {
		return q, errors.New("the time is empty: since must be before until")
	}
	return q, nil
}

// moment is a time ago, or a time.
func moment(name, text string, now time.Time, usual time.Duration) (time.Time, error) {
	if text == "" {
		return now.Add(-usual), nil
	}
	if at, err := time.Parse(time.RFC3339Nano, text); err == nil {
		return at.UTC(), nil
	}
	ago, err := span(text)
	if err != nil {
		return time.Time{}, fmt.Errorf("%s is %q: %w, or a moment such as 2026-01-02T15:04:05Z", name, text, err)
	}
	return now.Add(-ago), nil
}

// span is a duration, which may be in days.
func span(text string) (time.Duration, error) {
	bad := fmt.Errorf("want a time such as 90s, 24h or 7d, at most %s", "3660d")
	if days, isDays := strings.CutSuffix(text, "d"); isDays {
		n, err := strconv.ParseFloat(days, 64)
		if err != nil || !(n >= 0 && n <= longest.Hours()/24) {
			return 0, bad
		}
		return time.Duration(n * 24 * float64(time.Hour)), nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 || d > longest {
		return 0, bad
	}
	return d, nil
}

// Values is the question as parameters; Parse reads them.
func Values(q store.Question) url.Values {
	v := url.Values{}
	set := func(name, text string) {
		if text != "" {
			v.Set(name, text)
		}
	}
	set("service", schema.Name(q.Service))
	set("host", schema.Name(q.Host))
	set("workload", schema.Name(q.Workload))
	v.Set("since", q.From.UTC().Format(time.RFC3339Nano))
	v.Set("until", q.Until.UTC().Format(time.RFC3339Nano))
	if q.Step != 0 {
		v.Set("step", q.Step.String())
	}
	if q.Sort != "" {
		v.Set("sort", map[bool]string{true: "", false: "-"}[q.Ascending]+q.Sort)
	}
	for name, n := range map[string]int{"most": q.Most, "offset": q.Offset} {
		if n != 0 {
			v.Set(name, strconv.Itoa(n))
		}
	}
	return v
}
