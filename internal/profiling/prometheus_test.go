// SPDX-License-Identifier: Apache-2.0

package profiling

import (
	"strings"
	"testing"
	"time"
)

func promQL(query string) Metric {
	return Metric{Kind: PromQL, Arg: query, Server: "http://127.0.0.1:9090"}
}

func TestPrometheusPoints(t *testing.T) {
	const ok = `{"status":"success","data":{"resultType":`
	for text, want := range map[string]float64{
		ok + `"scalar","result":[1,"3"]}}`: 3, ok + `"vector","result":[{"metric":{},"value":[1.5,"4e3"]}]}}`: 4000,
		ok + `"matrix","result":[{"metric":{"a":"b"},"values":[[1,"2"],[2,"4"]]}]}}`: 2,
	} {
		if got, err := promQL("x").Points([]byte(text)); err != nil || got[0].Value != want {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
	for text, want := range map[string]string{
		`{"status":"error","errorType":"bad_data","error":"parse error: unexpected end"}`: "unexpected end",
		ok + `"vector","result":[]}}`:                                    "finds nothing",
		ok + `"vector","result":[{"value":[1,"1"]},{"value":[1,"2"]}]}}`: "finds 2 series",
		ok + `"vector","result":[{"value":[1,"NaN"]}]}}`:                 "is NaN",
		ok + `"matrix","result":[{"values":[[1,"+Inf"]]}]}}`:             "is +Inf",
		ok + `"matrix","result":[{"values":[]}]}}`:                       "has no number",
		ok + `"string","result":[1,"x"]}}`:                               `is a "string"`,
		ok + `"vector","result":[{"value":[1,2]}]}}`:                     "cannot unmarshal",
		ok + `"scalar","result":["x"]}}`:                                 "metric prometheus",
		`<html>`:                                                         "not from a Prometheus", `{}`: "metric prometheus",
	} {
		if got, err := promQL("x").Points([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, %v, want %q", text, got, err, want)
		}
	}
}

func TestPrometheusQuery(t *testing.T) {
	if got := promQL("sum(rate(x[$for])) / $for").Query(90 * time.Second); got != "sum(rate(x[90000ms])) / 90000ms" {
		t.Error(got)
	}
	for query, ok := range map[string]bool{
		"rate(x[$for])": true, "x": true, "rate(x[5s])": true, "rate(x[6s])": false, "rate(x[$for]) + rate(x[10s])": true, "rate(x[$for]) + rate(x[11s])": false,
		"x offset 1h": false, "x @ 5": false, "rate(x[600])": false, `x{a="@ offset [9h]"}`: true, "offsets": true, "max_over_time(x[1m:5s])": false, "rate(x[1h30m])": false,
		"rate(x[ 5m ])": false, "rate(x[99999999999999999999y])": false, `x{a="[5m"}`: true, "rate(x[500ms])": true, "rate(x[600:5s])": false,
	} {
		if err := promQL(query).CheckLookBack(5*time.Second, 10*time.Second); (err == nil) != ok {
			t.Errorf("%s: %v", query, err)
		}
	}
	if CheckReported(8, 10) != nil || CheckReported(7, 10) == nil {
		t.Error("8 of 10 moments are enough, 7 are not")
	}
}

func TestPrometheusChecks(t *testing.T) {
	for want, m := range map[string]Metric{
		"--pattern":                 {Kind: PromQL, Arg: "x", Server: "http://h", Counter: true},
		"--prometheus: that is for": {Kind: File, Arg: "x", Server: "http://h"},
	} {
		if err := m.Check(true); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", m, err, want)
		}
	}
	if m, err := ParseMetric(`prometheus:sum(rate(x{a="b:c"}[$for]))`); err != nil || m.Arg != `sum(rate(x{a="b:c"}[$for]))` || !m.AtEnd() {
		t.Errorf("%+v, %v", m, err)
	}
}

func FuzzPrometheusPoints(f *testing.F) {
	f.Add([]byte(`{"status":"success","data":{"resultType":"matrix","result":[{"values":[[1,"2"],[2,"4"]]}]}}`))
	f.Add([]byte(`{"status":"success","data":{"resultType":"scalar","result":[1,"3"]}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		if got, err := promQL("x").Points(data); err == nil && len(got) == 0 {
			t.Errorf("%q: no number and no error", data)
		}
	})
}
