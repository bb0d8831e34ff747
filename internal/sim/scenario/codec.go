// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"homenode/internal/schema"
	"homenode/internal/sim/runner"
)

// Decode reads one result in its wire form (JSON). It is strict: a newer schema, an unknown
// field, trailing text and an invalid result (Validate) are refused. On error the result is
// zero.
func Decode(data []byte) (Result, error) {
	return schema.Decode[Result](data, "simulation's result", ResultSchema)
}

// Encode writes the wire form, one line without a newline. It refuses what Decode would
// refuse.
func Encode(r Result) ([]byte, error) { return schema.Encode(r, "simulation's result") }

// Validate says what is invalid in a result: it checks the invariants that its readers rely
// on.
//
//  1. the schema is known, and the result says that it is modelled,
//  2. arms have unique names; the arm to compare with is among them,
//  3. each arm has one run per seed, in their order,
//  4. services and workloads ascend by name, each once; series are no longer than
//     MaxSamples and ascend in time,
//  5. figures are finite and not negative, shares at most 1,
//  6. each claim names a metric and arms that are there.
func (r Result) Validate() error {
	if err := runner.CheckForm(r.Schema, ResultSchema, r.How); err != nil { // 1
		return err
	}
	if b, err := hex.DecodeString(r.Digest); err != nil || len(b) != 32 {
		return fmt.Errorf("digest %.80q: want a SHA-256 in hexadecimal digits", r.Digest)
	}
	if r.Nodes < 0 || r.CPUs < 0 {
		return fmt.Errorf("%d nodes and %d CPUs: that is no machine", r.Nodes, r.CPUs)
	}
	c := &runner.Check{}
	c.Positive("period_s", r.PeriodS)
	c.Positive("seconds", r.Seconds)
	if why := checkSeeds(r.Seeds); why != "" {
		return fmt.Errorf("seeds: %s", why)
	}
	if _, ok := r.outcome(r.Against); !ok { // 2
		return fmt.Errorf("against %.80q: there is no such arm", r.Against)
	}
	for i, a := range r.Arms {
		if a.Name == "" || slices.ContainsFunc(r.Arms[:i], func(b Outcome) bool { return b.Name == a.Name }) {
			return fmt.Errorf("arm %d %.80q: want a name that no other has", i, a.Name)
		}
		if err := r.checkRuns(c, a); err != nil {
			return fmt.Errorf("arm %.80q: %w", a.Name, err)
		}
	}
	if c.Err != nil {
		return c.Err
	}
	return r.checkPaper()
}

func (r Result) checkRuns(c *runner.Check, a Outcome) error { // 3
	if len(a.Runs) != len(r.Seeds) {
		return fmt.Errorf("%d runs for %d seeds", len(a.Runs), len(r.Seeds))
	}
	for i, run := range a.Runs {
		if run.Seed != r.Seeds[i] {
			return fmt.Errorf("run %d is of seed %d: want %d", i, run.Seed, r.Seeds[i])
		}
		if err := run.check(c); err != nil {
			return fmt.Errorf("seed %d: %w", run.Seed, err)
		}
	}
	return nil
}

func (r Result) checkPaper() error { // 6
	known := func(arm string) bool { _, ok := r.outcome(arm); return ok }
	for i, p := range r.Paper {
		for _, wrong := range p.problems(known) {
			return fmt.Errorf("paper_claims[%d].%s: %s", i, wrong.path, wrong.text)
		}
	}
	return nil
}

func (r Run) check(c *runner.Check) error { // 4
	for i, s := range r.Services {
		if strings.TrimSpace(s.Name) == "" || i > 0 && s.Name <= r.Services[i-1].Name || s.Replicas < 0 {
			return fmt.Errorf("service %d %.80q: want ascending names, and no negative count", i, s.Name)
		}
		c.Positive("service "+s.Name, s.Ops, s.Asked, s.Dropped, s.LatencyS, s.P99S, s.CPUPerOp, s.IPC, s.StalledS)
		c.Share("service "+s.Name, s.LocalRatio)
	}
	for i, w := range r.Workloads {
		if w.ID == "" || i > 0 && w.ID <= r.Workloads[i-1].ID {
			return fmt.Errorf("workload %d %.80q: want ascending IDs", i, w.ID)
		}
		c.Positive("workload "+w.ID, w.LatencyS, w.CPUPerOp)
		c.Share("workload "+w.ID, w.LocalRatio, w.BoundShare)
	}
	if len(r.Series) > MaxSamples {
		return fmt.Errorf("%d samples: want at most %d", len(r.Series), MaxSamples)
	}
	for i, s := range r.Series {
		if i > 0 && !(s.Hour > r.Series[i-1].Hour) {
			return fmt.Errorf("sample %d is at hour %g: want ascending hours", i, s.Hour)
		}
		c.Positive("series", s.Hour, s.Load, s.LatencyS)
		c.Share("series", s.LocalRatio, s.Unbound)
	}
	if r.Binds < 0 || r.Unbinds < 0 || r.Refused < 0 {
		return fmt.Errorf("%d binds, %d unbinds, %d refused: they must not be negative", r.Binds, r.Unbinds, r.Refused)
	}
	c.Positive("moved_bytes, cpu_seconds", r.MovedB, r.CPUSeconds)
	c.Share("unbind_ratio, local_ratio", r.UnbindRatio, r.LocalRatio)
	return nil
}
