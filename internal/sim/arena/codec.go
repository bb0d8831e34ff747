// SPDX-License-Identifier: Apache-2.0

package arena

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"homenode/internal/schema"
	"homenode/internal/sim/runner"
)

const whatItIs = "arena's result"

// Decode reads one result in its wire form (JSON). It is strict: a newer schema, an unknown
// field, trailing text and an invalid result (Validate) are refused. On error the result is
// zero.
func Decode(data []byte) (Result, error) { return schema.Decode[Result](data, whatItIs, Schema) }

// Encode writes the wire form, one line without a newline. It refuses what Decode would
// refuse.
func Encode(r Result) ([]byte, error) { return schema.Encode(r, whatItIs) }

// Validate says what is invalid in a result: it checks the invariants that its readers rely
// on.
//
//  1. the schema is known, and the result says that it is modelled,
//  2. machines, mixes and policies have unique names; seeds are unique,
//  3. cells belong to those, in their order, each once; a mix that does not fit a machine
//     is missing for all policies and seeds,
//  4. a cell's apps ascend by ID, each once,
//  5. figures are finite and not negative, shares at most 1,
//  6. a row has all its texts, and its verdict is a known one.
//
// A result that has only rows has no cells, machines or policies.
func (r Result) Validate() error {
	if err := runner.CheckForm(r.Schema, Schema, r.How); err != nil { // 1
		return err
	}
	if err := errors.Join(checkNames("machine", r.Machines), checkNames("mix", r.Mixes), checkNames("policy", r.Policies)); err != nil { // 2
		return err
	}
	for i, seed := range r.Seeds {
		if slices.Contains(r.Seeds[:i], seed) {
			return fmt.Errorf("seed %d is there twice", seed)
		}
	}
	if len(r.Cells) > 0 && !slices.ContainsFunc(r.Policies, func(n Named) bool { return n.Name == r.Against }) {
		return fmt.Errorf("against %.80q: there is no such policy", r.Against)
	}
	if err := r.checkOrder(); err != nil {
		return err
	}
	for i := range r.Cells {
		if err := r.Cells[i].check(); err != nil {
			return fmt.Errorf("%s: %w", r.Cells[i].name(), err)
		}
	}
	return checkRows(r.Rows)
}

func checkNames(what string, all []Named) error {
	for i, n := range all {
		if strings.TrimSpace(n.Name) == "" || slices.ContainsFunc(all[:i], func(o Named) bool { return o.Name == n.Name }) {
			return fmt.Errorf("%s %d %.80q: want a name that no other has", what, i, n.Name)
		}
		if n.Nodes < 0 || n.CPUs < 0 {
			return fmt.Errorf("%s %.80q: %d nodes and %d CPUs: that is no machine", what, n.Name, n.Nodes, n.CPUs)
		}
		f := &runner.Check{}
		f.Positive("seconds", n.PeriodS, n.LastsS, n.WarmupS, n.StepS)
		if f.Err != nil {
			return fmt.Errorf("%s %.80q: %w", what, n.Name, f.Err)
		}
	}
	return nil
}

// checkOrder is number 3 of Validate.
func (r Result) checkOrder() error {
	at := 0
	for _, m := range r.Machines {
		for _, x := range r.Mixes {
			if at >= len(r.Cells) || r.Cells[at].Machine != m.Name || r.Cells[at].Mix != x.Name {
				continue // the mix did not fit
			}
			for _, p := range r.Policies {
				for _, seed := range r.Seeds {
					want := Cell{Machine: m.Name, Mix: x.Name, Policy: p.Name, Seed: seed}
					if at >= len(r.Cells) || r.Cells[at].name() != want.name() {
						return fmt.Errorf("cell %d is not of %s", at, want.name())
					}
					at++
				}
			}
		}
	}
	if at != len(r.Cells) {
		return fmt.Errorf("cell %d, of %s, is out of order, or of something that the result does not name", at, r.Cells[at].name())
	}
	return nil
}

func (c *Cell) name() string {
	return fmt.Sprintf("machine %.80q, mix %.80q, policy %.80q, seed %d", c.Machine, c.Mix, c.Policy, c.Seed)
}

func (c *Cell) check() error {
	f := &runner.Check{}
	if c.Moves < 0 || c.Pins < 0 || c.Binds < 0 || c.Asides < 0 || c.Unbinds < 0 || c.Refused < 0 {
		return errors.New("a count is negative")
	}
	f.Positive("moved_bytes, mover_cpu_s, cpu_seconds", c.MovedB, c.MoverCPU, c.CPUSeconds)
	f.Share("local_ratio", c.LocalRatio)
	for i, a := range c.Apps { // 4
		if a.ID == "" || i > 0 && a.ID <= c.Apps[i-1].ID || a.Threads < 0 {
			return fmt.Errorf("app %d %.80q: want ascending IDs, and no negative count", i, a.ID)
		}
		f.Positive("app "+a.ID, a.Ops, a.P99S, a.CPUPerOp, a.IPC, a.MPI, a.Penalty)
		f.Share("app "+a.ID, a.LocalRatio, a.Fairness)
	}
	return f.Err
}

func checkRows(rows []Row) error { // 6
	for i, w := range rows {
		if w.Paper == "" || w.Statement == "" || w.Sentence == "" {
			return fmt.Errorf("row %d: want a paper, a statement and a sentence", i)
		}
		if all := []Verdict{Confirmed, NotConfirmed, CannotTest, NotJudged}; !slices.Contains(all, w.Verdict) {
			return fmt.Errorf("row %d: verdict %.80q: want one of %q", i, w.Verdict, all)
		}
	}
	return nil
}
