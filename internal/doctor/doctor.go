// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"cmp"
	"slices"
	"time"

	"homenode/internal/action"
	"homenode/internal/snapshot"
	"homenode/internal/unit"
)

// Schema is the version of Report's wire form.
const Schema = 1

// Report is what the doctor says about one snapshot. It is a value.
type Report struct {
	Schema   int           `json:"schema"`
	At       time.Time     `json:"at"` // of the snapshot
	Length   time.Duration `json:"length_ns"`
	Origin   string        `json:"origin"` // of the machine: "live", "recorded:…"
	Verdict  Verdict       `json:"verdict"`
	Findings []Finding     `json:"findings"` // risks first, then by cost
	// Skipped are the rules that could not judge all of their subjects, and why.
	Skipped []Skipped `json:"skipped"`
	// Quiet are the rules that judged and found nothing.
	Quiet []string `json:"quiet"`
	Rules int      `json:"rule_count"` // how many there are
	// Problems is what the snapshot could not read, a sentence each. The report rests
	// on the rest.
	Problems []string `json:"problems,omitempty"`
}

// Answer is the verdict in a word.
type Answer string

// The answers.
const (
	Yes        Answer = "yes"
	No         Answer = "no"
	CannotTell Answer = "cannot tell"
)

// Verdict answers the question whether NUMA is this machine's bottleneck.
type Verdict struct {
	Answer  Answer          `json:"answer"`
	Why     string          `json:"why"` // a clause
	Numbers []action.Number `json:"numbers,omitempty"`
	// How says how the accesses behind the answer are known. Their cost is estimated in
	// any case.
	How unit.Source `json:"how"`
	// Missing says what would turn a "cannot tell" into a yes or a no.
	Missing string `json:"missing,omitempty"`
}

// Severity says how much a finding matters.
type Severity string

// The severities, worst first. Unweighed: the harm is there, but no figure gives its
// cost.
const (
	Critical  Severity = "critical" // something is about to fail, or has
	Serious   Severity = "serious"  // costs at least Config.Bottleneck of the busy time
	Moderate  Severity = "moderate" // costs at least Config.Slight of it
	Minor     Severity = "minor"
	Unweighed Severity = "unweighed"
)

// Severities are all of them, worst first.
var Severities = []Severity{Critical, Serious, Moderate, Minor, Unweighed}

// Finding is one thing that is wrong. Findings about one workload are often the same
// loss seen from several sides: they share one account (account.go), and their costs
// add up to no more than the loss in the verdict.
type Finding struct {
	Rule     string   `json:"rule"` // stable: "page-cache-fills-node"
	Title    string   `json:"title"`
	Subject  Subject  `json:"subject"`
	Severity Severity `json:"severity"`
	// Risk is what fails if nothing is done; "" when it costs only time.
	Risk string `json:"risk,omitempty"`
	// Cost is CPUs' worth of time that is lost.
	Cost     unit.Value[float64] `json:"cost_cpus"`
	Evidence []Evidence          `json:"evidence"`
	Cause    string              `json:"cause_text"`
	Remedy   string              `json:"remedy"`
	// Commands are exact: they have the ids of this machine, and root can paste them
	// into a shell. At most one starts a program; the reader fills in its COMMAND…, so
	// that no text of a process is ever run.
	Commands []string `json:"commands"`
	// Afterwards says why the verdict will not be better once the commands have run
	// (afterwards.go). "": it will be better.
	Afterwards string `json:"afterwards,omitempty"`
	// How says how its evidence is known: the weakest of all.
	How unit.Source `json:"how"`
	// Decides says that the finding alone answers the verdict with yes: memory or
	// bandwidth of one node is used up while other nodes have some left.
	Decides bool `json:"decides,omitempty"`
	draws   []draw
}

// SubjectKind says what a finding is about.
type SubjectKind string

// The subjects.
const (
	SubjectHost     SubjectKind = "host"
	SubjectNode     SubjectKind = "node"
	SubjectWorkload SubjectKind = "workload"
	SubjectProcess  SubjectKind = "process"
	SubjectThread   SubjectKind = "thread"
	SubjectDevice   SubjectKind = "device"
)

// Subject is what a finding is about. ID is the node, the cgroup path, the PID,
// the TID, the PCI address or the IRQ; "" for the host.
type Subject struct {
	Kind SubjectKind `json:"kind"`
	ID   string      `json:"id,omitempty"`
	Name string      `json:"name,omitempty"` // of a process or device
	// Workload is the workload that loses the time, where there is one.
	Workload string `json:"workload,omitempty"`
}

// Evidence is one figure that a finding rests on.
type Evidence struct {
	Name  string      `json:"name"`
	Value string      `json:"text"` // for people, with its unit
	How   unit.Source `json:"how"`
	From  string      `json:"from,omitempty"`
}

// Skipped is a rule that could not judge all or some of its subjects.
type Skipped struct {
	Rule     string   `json:"rule"`
	Why      string   `json:"why"`
	Subjects []string `json:"subjects,omitempty"` // empty: all
}

// rule is one thing that can be wrong.
type rule struct {
	id    string
	nodes int // the fewest nodes that it needs
	judge func(snapshot.Snapshot, Config) ([]Finding, []Skipped)
}

// Examine applies every rule to a snapshot:
//
//  1. a rule that needs several nodes is quiet on a machine that has one,
//  2. the general finding about a workload is dropped if another one knows the cause,
//  3. findings about the same loss share it,
//  4. a finding gets its severity and source from its cost and evidence, and says what
//     its commands will not change,
//  5. risks first, then by cost, the unweighed last; ties by rule and subject,
//  6. the verdict looks at the losses of all workloads and at what was found.
func Examine(s snapshot.Snapshot, c Config) Report {
	r := Report{
		Schema: Schema, At: s.At, Length: s.Length, Origin: s.Machine.Origin, Rules: len(rules), Problems: s.Problems,
		Findings: []Finding{}, Skipped: []Skipped{}, Quiet: []string{},
	}
	l := view{s, c}
	for _, rule := range rules {
		if len(s.Machine.Nodes) < rule.nodes { // 1
			r.Quiet = append(r.Quiet, rule.id)
			continue
		}
		found, skipped := rule.judge(s, c)
		for _, f := range found {
			f.Rule = rule.id
			r.Findings = append(r.Findings, f)
		}
		r.Skipped = append(r.Skipped, merge(rule.id, skipped)...)
		if len(found)+len(skipped) == 0 {
			r.Quiet = append(r.Quiet, rule.id)
		}
	}
	r.Findings = explained(r.Findings) // 2
	l.charge(r.Findings)               // 3
	busy := l.busy()
	for i := range r.Findings { // 4
		f := &r.Findings[i]
		f.How, f.Severity = f.source(), f.severity(busy, c)
		f.Afterwards = f.afterwards()
	}
	slices.SortStableFunc(r.Findings, before) // 5
	r.Verdict = verdict(s, c, r.Findings)     // 6
	return r
}

func (f Finding) source() unit.Source {
	var all []unit.Source
	for _, e := range f.Evidence {
		all = append(all, e.How)
	}
	return unit.WeakestKnown(all...)
}

func (f Finding) severity(busy unit.Value[float64], c Config) Severity {
	cost, ok := f.Cost.Get()
	all, okAll := busy.Get()
	switch {
	case f.Risk != "":
		return Critical
	case !ok || !okAll || all <= 0:
		return Unweighed
	case cost/all >= c.Bottleneck:
		return Serious
	case cost/all >= c.Slight:
		return Moderate
	}
	return Minor
}

func before(a, b Finding) int {
	rank := func(f Finding) int {
		switch {
		case f.Risk != "":
			return 0
		case f.Cost.Known():
			return 1
		}
		return 2
	}
	return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(b.Cost.Or(0), a.Cost.Or(0)),
		cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Subject.Kind, b.Subject.Kind), cmp.Compare(a.Subject.ID, b.Subject.ID))
}

// explained drops the general finding about a workload if another finding knows why the
// workload is far from its memory.
func explained(all []Finding) []Finding {
	why := map[string]bool{}
	for _, f := range all {
		if f.Rule != remoteWorkloadID && slices.Contains(explaining, f.Rule) {
			why[f.Subject.Workload] = true
		}
	}
	return slices.DeleteFunc(all, func(f Finding) bool { return f.Rule == remoteWorkloadID && why[f.Subject.Workload] })
}

// merge joins what was skipped for the same reason.
func merge(rule string, all []Skipped) []Skipped {
	var out []Skipped
	for _, s := range all {
		s.Rule = rule
		i := slices.IndexFunc(out, func(o Skipped) bool { return o.Why == s.Why })
		if i < 0 {
			out = append(out, s)
			continue
		}
		if len(s.Subjects) == 0 || len(out[i].Subjects) == 0 {
			out[i].Subjects = nil
			continue
		}
		out[i].Subjects = append(slices.Clip(out[i].Subjects), s.Subjects...)
	}
	return out
}
