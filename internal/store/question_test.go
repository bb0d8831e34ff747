// SPDX-License-Identifier: Apache-2.0

package store

import (
	"slices"
	"strings"
	"testing"
	"time"
)

var noon = time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)

func asked(t Topic) Question { return Question{Topic: t, From: noon.Add(-time.Hour), Until: noon} }

// Every topic has a purpose, columns without two of one name, and an order among them.
func TestTopics(t *testing.T) {
	if len(Topics) != len(subjects) {
		t.Errorf("%d topics, %d subjects", len(Topics), len(subjects))
	}
	for _, topic := range Topics {
		var names []string
		for _, c := range topic.Columns() {
			if c.Name == "" || c.About == "" || slices.Contains(names, c.Name) {
				t.Errorf("%s: column %+v", topic, c)
			}
			names = append(names, c.Name)
		}
		if order, _ := asked(topic).Order(); topic.About() == "" || order != "" && !slices.Contains(names, order) {
			t.Errorf("%s: %q, by %q", topic, topic.About(), order)
		}
		for _, need := range subjects[topic].needs {
			for _, name := range strings.Split(need, "|") {
				if !slices.Contains(topic.Takes(), name) {
					t.Errorf("%s needs %s and does not take it", topic, name)
				}
			}
		}
	}
}

func TestQuestionCheck(t *testing.T) {
	for _, c := range []struct {
		change func(*Question)
		topic  Topic
		want   string // of the error; "": there is none
	}{
		{func(*Question) {}, Services, ""},
		{func(*Question) {}, "rumours", "want one of services"},
		{func(q *Question) { q.Until = q.From }, Services, "the time is empty"},
		{func(q *Question) { q.Workload = "/a" }, Services, "services takes no workload"},
		{func(q *Question) { q.Ascending = true }, Events, "events takes no sort"},
		{func(*Question) {}, Workloads, "workloads needs a host"},
		{func(q *Question) { q.Host = "h" }, History, "history needs a workload or a service"},
		{func(q *Question) { q.Workload = "/a" }, History, "needs its host"},
		{func(q *Question) { q.Workload, q.Host, q.Service = "/a", "h", "s" }, History, "not of both"},
		{func(q *Question) { q.Service = "s"; q.Step = time.Second }, History, "at most 2000 points"},
		{func(q *Question) { q.Sort = "colour" }, Services, `sort is "colour"`},
		{func(q *Question) { q.Host, q.Sort = "h", "cpu_by_node" }, Workloads, "sort is"},
		{func(q *Question) { q.Host = strings.Repeat("x", 1<<20) }, Hosts, "a name has 1048576 bytes"},
		{func(q *Question) { q.Most = MostRows + 1 }, Hosts, "most is 10001"},
		{func(q *Question) { q.Offset = -1 }, Hosts, "offset is -1"},
	} {
		q := asked(c.topic)
		c.change(&q)
		got, err := q.Check()
		if c.want == "" && (err != nil || got.Most != UsualRows) || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%+v: %v, want %q", q, err, c.want)
		}
	}
	q := asked(History)
	q.Service = "s"
	if got, err := q.Check(); err != nil || got.Step != 18*time.Second || got.Most != mostPoints {
		t.Errorf("%+v: %v", got, err)
	}
}
