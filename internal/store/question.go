// SPDX-License-Identifier: Apache-2.0

package store

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Topics are all topics, in the order in which a person asks.
var Topics = []Topic{Services, Gain, Instances, Hosts, HostBins, Workloads, Nodes, History, Events, Unbound, Totals}

// HostBins counts hosts by how far their nodes are apart and by their share of remote
// traffic, in steps of BinStep: a picture of 100,000 hosts takes 121 rows. Nodes are one
// host's nodes. Totals is one row about everything.
const (
	HostBins Topic = "host-bins"
	Nodes    Topic = "nodes"
	Totals   Topic = "totals"
)

// BinStep is how wide a bin of HostBins is: a share.
const BinStep = 0.1

// field is one of a question's.
type field struct {
	name   string
	filled func(Question) bool
}

var fields = []field{
	{"host", func(q Question) bool { return q.Host != "" }},
	{"workload", func(q Question) bool { return q.Workload != "" }},
	{"service", func(q Question) bool { return q.Service != "" }},
	{"step", func(q Question) bool { return q.Step != 0 }},
	{"sort", func(q Question) bool { return q.Sort != "" || q.Ascending }},
	{"offset", func(q Question) bool { return q.Offset != 0 }},
}

// subject is what a topic's answer is about.
type subject struct {
	about   string
	takes   []string // fields that it may have
	needs   []string // fields that it must have; "a|b" is one of them
	sort    string   // the column that it is sorted by; "": its rows have one order
	rising  bool     // the order of sort where the question names no column
	columns []Column
}

const localHelp = "local access ratio: local / all DRAM reads, weighted by reads, or by CPU time where nothing counts reads"

// Columns that several topics have.
var (
	colService  = Column{"service", "", "service; empty: no rule names one"}
	colHost     = Column{"host", "", "host"}
	colWorkload = Column{"workload", "", "cgroup path"}
	colLocal    = Column{"local", "1", localHelp}
	colLocalHow = Column{"local_how", "", "how local is known: measured, modelled, estimated or unknown; the weakest of its parts"}
	colTraffic  = Column{"traffic", "bytes/s", "bytes a second between caches and memory"}
	colCPU      = Column{"cpu", "CPUs", "CPU time"}
	colUnbound  = Column{"unbound", "1", "share of the time in which homenode bound it to no node"}
	colGain     = Column{"gain", "CPUs", "CPU time that local reads would save"}
	colGainHow  = Column{"gain_how", "", "how gain is known; never measured, for it has not happened"}
	colLast     = Column{"last", "", "end of its last window"}
	colAt       = Column{"at", "", "when"}
	colSentence = Column{"sentence", "", "why, in words"}
)

var subjects = map[Topic]subject{
	Services: {about: "each service: workloads, hosts, local access ratio, traffic, time unbound and gain; worst ratio first",
		takes: []string{"service", "host", "sort", "offset"}, sort: "local", rising: true,
		columns: []Column{colService, {"workloads", "", "workloads"}, {"hosts", "", "hosts"}, colLocal, colLocalHow, colTraffic, colCPU, colUnbound, colGain, colGainHow}},
	Gain: {about: "each service: what its remote reads cost, and what binding would save of its CPU time; most first",
		takes: []string{"service", "sort", "offset"}, sort: "gain",
		columns: []Column{colService, {"workloads", "", "workloads"}, colLocal, colLocalHow, colCPU, {"stalls", "1", "share of its cycles in which it waits for memory"}, colGain, {"gain_share", "1", "gain as a share of its CPU time"}, colGainHow}},
	Instances: {about: "one service's workloads on all hosts, worst local access ratio first",
		takes: []string{"service", "host", "sort", "offset"}, needs: []string{"service"}, sort: "local", rising: true,
		columns: []Column{colHost, colWorkload, {"name", "", "what its manager calls it"}, {"bound", "", "nodes it is bound to; empty: not bound"}, colLocal, colLocalHow, colTraffic, colCPU, colUnbound, colLast}},
	Hosts: {about: "each host: how far its nodes are apart, share of remote traffic, workloads, last heard of; worst first",
		takes: []string{"host", "sort", "offset"}, sort: "spread",
		columns: []Column{colHost, {"nodes", "", "NUMA nodes"}, {"workloads", "", "workloads"}, {"spread", "1", "busiest node less idlest, each as a share of its CPUs"}, {"remote", "1", "share of remote DRAM reads"}, {"remote_how", "", "how remote is known"}, colTraffic, colLast}},
	HostBins: {about: "number of hosts by spread and share of remote reads, in steps of 0.1; for a picture of many hosts",
		columns: []Column{{"spread", "1", "lower end of the step; null: unknown"}, {"remote", "1", "lower end of the step; null: unknown"}, {"hosts", "", "hosts"}, {"example", "", "one of them"}}},
	Workloads: {about: "one host's workloads with their nodes, worst local access ratio first",
		takes: []string{"host", "sort", "offset"}, needs: []string{"host"}, sort: "local", rising: true,
		columns: []Column{colWorkload, colService, {"name", "", "what its manager calls it"}, {"bound", "", "nodes it is bound to; empty: not bound"}, colLocal, colLocalHow, colTraffic, colCPU, {"cpu_by_node", "CPUs", "CPU time by node, a list"}, {"memory_by_node", "bytes", "anonymous and file memory by node, a list"}, colLast}},
	Nodes: {about: "one host's NUMA nodes", takes: []string{"host"}, needs: []string{"host"},
		columns: []Column{{"node", "", "NUMA node"}, {"cpus", "", "online CPUs"}, {"busy", "CPUs", "CPU time"}, {"memory", "bytes", "memory"}, {"free", "bytes", "free memory, at the end"}, colTraffic, colLast}},
	History: {about: "one workload of one host, or one service, by time",
		takes: []string{"host", "workload", "service", "step"}, needs: []string{"workload|service"},
		columns: []Column{colAt, {"workloads", "", "workloads"}, colLocal, colLocalHow, colTraffic, colCPU, {"bound", "1", "share of its windows in which it is bound"}}},
	Events: {about: "decisions and outcomes with the sentence why, newest first",
		takes:   []string{"host", "workload", "service", "offset"},
		columns: []Column{colAt, colHost, colWorkload, colService, {"kind", "", "what was decided, or the step"}, {"state", "", "decided, dry run, or what became of the step"}, {"rule", "", "the reason's code"}, colSentence}},
	Unbound: {about: "workloads that were unbound, when and why, newest first",
		takes:   []string{"host", "workload", "service", "offset"},
		columns: []Column{colAt, colHost, colWorkload, colService, {"rule", "", "the reason's code"}, colSentence}},
	Totals: {about: "one row: hosts, workloads and services of the time, and its first and last window",
		columns: []Column{{"hosts", "", "hosts"}, {"workloads", "", "workloads"}, {"services", "", "services"}, colLocal, colLocalHow, colTraffic, colCPU, {"first", "", "end of the first window"}, colLast}},
}

// About is what a topic answers; "" is no topic.
func (t Topic) About() string { return subjects[t].about }

// Columns are those of a topic's answer.
func (t Topic) Columns() []Column { return slices.Clone(subjects[t].columns) }

// Takes are the fields that a question of this topic may have beside its time and Most.
func (t Topic) Takes() []string { return slices.Clone(subjects[t].takes) }

// Order is the column by which an answer to the question is sorted; "": a topic has its own
// order.
func (q Question) Order() (column string, ascending bool) {
	if q.Sort != "" {
		return q.Sort, q.Ascending
	}
	return subjects[q.Topic].sort, subjects[q.Topic].rising
}

// Bounds of questions.
const (
	UsualRows  = 100
	MostRows   = 10_000
	mostName   = 4096 // PATH_MAX, and more than a host or a service has
	mostOffset = 10_000_000
	mostPoints = 2000
	usualSpan  = 200 // points of a history
)

// Check refuses what cannot be answered, and fills in what the question leaves out.
func (q Question) Check() (Question, error) {
	s, ok := subjects[q.Topic]
	if !ok {
		return q, fmt.Errorf("topic %q: want one of %s", q.Topic, topicNames())
	}
	if q.From.IsZero() || q.Until.IsZero() || !q.From.Before(q.Until) {
		return q, errors.New("the time is empty: since must be before until")
	}
	for _, f := range fields {
		if f.filled(q) && !slices.Contains(s.takes, f.name) {
			return q, fmt.Errorf("%s takes no %s", q.Topic, f.name)
		}
	}
	for _, need := range s.needs {
		if !slices.ContainsFunc(strings.Split(need, "|"), func(name string) bool { return filled(q, name) }) {
			return q, fmt.Errorf("%s needs a %s", q.Topic, strings.ReplaceAll(need, "|", " or a "))
		}
	}
	if err := q.checkHistory(); err != nil {
		return q, err
	}
	if q.Sort != "" && !slices.ContainsFunc(s.columns, func(c Column) bool { return c.Name == q.Sort && sortable(c) }) {
		return q, fmt.Errorf("sort is %q: want a column of %s", q.Sort, q.Topic)
	}
	return q.bounded()
}

// sortable columns are figures and names, not lists.
func sortable(c Column) bool { return !strings.HasSuffix(c.Name, "_by_node") }

func filled(q Question, name string) bool {
	for _, f := range fields {
		if f.name == name {
			return f.filled(q)
		}
	}
	return false
}

func (q *Question) checkHistory() error {
	if q.Topic != History {
		return nil
	}
	switch {
	case q.Workload != "" && q.Host == "":
		return errors.New("a workload's history needs its host too: two hosts may have workloads of one name")
	case q.Workload != "" && q.Service != "":
		return errors.New("a history is of a workload or of a service, not of both")
	}
	span := q.Until.Sub(q.From)
	if q.Step == 0 {
		q.Step = max(span/usualSpan, time.Second).Round(time.Second)
	}
	if q.Step < time.Second || span/q.Step > mostPoints {
		return fmt.Errorf("step is %v: want at least 1s, and at most %d points", q.Step, mostPoints)
	}
	return nil
}

func (q Question) bounded() (Question, error) {
	for _, text := range []string{q.Host, q.Workload, q.Service} {
		if len(text) > mostName {
			return q, fmt.Errorf("a name has %d bytes: want at most %d", len(text), mostName)
		}
	}
	if q.Most == 0 {
		q.Most = UsualRows
		if q.Topic == History {
			q.Most = mostPoints
		}
	}
	if q.Most < 1 || q.Most > MostRows {
		return q, fmt.Errorf("most is %d: want 1 to %d rows", q.Most, MostRows)
	}
	if q.Offset < 0 || q.Offset > mostOffset {
		return q, fmt.Errorf("offset is %d: want 0 to %d", q.Offset, mostOffset)
	}
	return q, nil
}

func topicNames() string {
	names := make([]string, len(Topics))
	for i, t := range Topics {
		names[i] = string(t)
	}
	return strings.Join(names, ", ")
}
