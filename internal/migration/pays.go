// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"math"
	"time"

	"homenode/internal/action"
	"homenode/internal/unit"
)

// Stake is what a move is about, in figures of one window.
type Stake struct {
	Bytes      unit.Bytes          // that would move
	RemoteRate unit.Value[float64] // remote loads/s that go to these bytes
	Difference unit.Value[float64] // seconds that each is shorter afterwards
	// Waiting bounds what can be saved (Waits). CPU unknown: it is not bounded.
	CPU      unit.Value[float64]    // CPU-seconds a second that it uses
	Stalled  unit.Value[unit.Ratio] // share of its cycles in which it waits for memory
	Part     unit.Opt[float64]      // share of all its loads that RemoteRate is
	Slower   unit.Value[float64]    // by what factor such a load takes longer now than afterwards
	Requests unit.Opt[Requests]     // a second
	// Fill is how full the fullest of the nodes would be that it moves to, as a share of
	// what its memory delivers, and Crowded by what factor its work takes longer by that
	// (Longer). Unknown where no bandwidth is known: then nothing follows from it.
	Fill, Crowded unit.Value[float64]

	Horizon time.Duration       // for how long they will be read as they are now
	PerByte unit.Value[float64] // CPU-seconds
	// Undone is bytes that an earlier move brought to where they would now leave from:
	// its cost was for nothing, so both have to be earned.
	Undone unit.Bytes
	Ratio  float64 // by which the gain must exceed the cost; 0 is 1
	// Private is the private memory of Bytes. No step is made for Enough or less of it,
	// whether that pays or not. 0: it is not asked.
	Private, Enough unit.Bytes
}

// Answer is whether moving pays.
type Answer string

// The answers.
const (
	PaysYes        Answer = "yes"
	PaysNo         Answer = "no"
	PaysCannotTell Answer = "cannot tell"
)

// Verdict is the answer, and the figures it comes from.
type Verdict struct {
	Answer  Answer              `json:"answer"`
	Bytes   unit.Bytes          `json:"bytes"`
	Gain    unit.Value[float64] `json:"gain_cpu_s"`
	Cost    unit.Value[float64] `json:"cost_cpu_s"`
	Numbers []action.Number     `json:"numbers"`
}

// Short is the verdict as a short reason.
func (v Verdict) Short() action.Reason {
	for _, n := range v.Numbers {
		switch {
		case n.Name == tooLittle:
			return action.Reason{Rule: "migration.too-little", Numbers: v.Numbers}
		case n.Name == crowds && n.Decides:
			return action.Reason{Rule: "migration.spread", Numbers: v.Numbers}
		}
	}
	rules := map[Answer]string{PaysYes: "migration.pays", PaysNo: "migration.pays-not", PaysCannotTell: "migration.cannot-tell"}
	return action.Reason{Rule: rules[v.Answer], Numbers: v.Numbers}
}

// Sum is the whole calculation.
func (v Verdict) Sum() action.Reason {
	for _, n := range v.Numbers {
		if n.Name == bound {
			return action.Reason{Rule: "migration.sum-bounded", Numbers: v.Numbers}
		}
	}
	return action.Reason{Rule: "migration.sum", Numbers: v.Numbers}
}

// Pays weighs a move.
//
//  1. Gain: loads/s × seconds saved a load × horizon, in CPU-seconds, as if no loads
//     overlapped; but no more than the share of its waiting for memory that these loads are
//     (Waits), which is never more than its CPU time. What it loses because the nodes that
//     it moves to get fuller is taken off (Longer), and what it wins by leaving a full node
//     is added. It is assumed to go on as in this window.
//  2. Cost: bytes × CPU-seconds a byte, of the bytes that move and of those whose
//     earlier move would be undone.
//  3. Yes, if the gain is more than Ratio times the cost. A figure that is unknown is
//     no 0: then the answer is unknown, except that a load that gets no shorter never pays.
func Pays(s Stake) Verdict {
	v, limit := s.weigh()
	v.Numbers = s.numbers(v, limit)
	return v
}

// weigh is numbers 1 to 3 of Pays; limit is what the gain must exceed.
func (s Stake) weigh() (v Verdict, limit unit.Opt[float64]) {
	v = Verdict{Answer: PaysCannotTell, Bytes: s.Bytes}
	seconds := s.Horizon.Seconds()
	v.Gain = s.gain(seconds) // 1
	v.Cost = unit.ValueOf(s.PerByte.Or(0)*float64(s.Bytes+s.Undone), s.PerByte.How, s.PerByte.From)
	if !s.PerByte.Known() { // 2
		v.Cost = unit.UnknownValue[float64](s.PerByte.From)
	}
	if cost, ok := v.Cost.Get(); ok {
		limit = unit.Some(cost * s.ratio())
	}
	gain, okGain := v.Gain.Get()
	least, okLimit := limit.Get()
	switch difference, ok := s.Difference.Get(); { // 3
	case ok && difference <= 0 && s.Crowded.Or(1) >= 1:
		v.Answer = PaysNo
	case okGain && okLimit && gain > least:
		v.Answer = PaysYes
	case okGain && okLimit:
		v.Answer = PaysNo
	}
	return v, limit
}

// gain is number 1 of Pays.
func (s Stake) gain(seconds float64) unit.Value[float64] {
	gain := product(s.RemoteRate, s.Difference, seconds)
	serial, known := gain.Get()
	cpu, used := s.CPU.Get()
	if !known || !used {
		return gain
	}
	if saved := s.saved() * seconds; saved < serial {
		gain = unit.Estimated(saved, "what it waits for these loads × horizon")
	}
	if factor, ok := s.Crowded.Get(); ok {
		most := cpu * seconds
		gain = unit.Estimated(min(most, gain.Or(0)-float64(most*(factor-1))), gain.From+", and nodes that get fuller")
	}
	return gain
}

// saved is the bound of number 1, CPU-seconds a second.
func (s Stake) saved() float64 {
	slower, ok := s.Slower.Get()
	if !ok {
		slower = math.Inf(1)
	}
	saved, _ := s.waits().Saved(Excess(s.Part.Or(1), slower))
	return saved
}

func (s Stake) waits() Waits {
	stalled, ok := s.Stalled.Get()
	serial := product(s.RemoteRate, s.Difference, 1).V
	return Waits{CPU: s.CPU.Or(0), Stalled: unit.OptOf(float64(stalled), ok), Serial: serial, Loads: s.Requests}
}

// crowd says that the move does not pay because a node would be full.
func (s Stake) crowd(v Verdict, limit unit.Opt[float64]) bool {
	least, ok := limit.Get()
	alone := product(s.RemoteRate, s.Difference, s.Horizon.Seconds()).Or(0)
	if s.CPU.Known() {
		alone = min(alone, s.saved()*s.Horizon.Seconds())
	}
	return ok && v.Answer == PaysNo && s.Crowded.Or(1) > 1 && alone > least
}

func (s Stake) ratio() float64 {
	if s.Ratio == 0 {
		return 1
	}
	return s.Ratio
}

func product(rate, difference unit.Value[float64], seconds float64) unit.Value[float64] {
	switch {
	case !rate.Known():
		return unit.UnknownValue[float64](rate.From)
	case !difference.Known():
		return unit.UnknownValue[float64](difference.From)
	}
	return unit.ValueOf(rate.Or(0)*difference.Or(0)*seconds, unit.Weakest(rate.How, difference.How), "remote loads/s × seconds saved a load × horizon")
}

// tooLittle is the figure of what is elsewhere, where it is too little for a step.
const tooLittle = "private_remote_bytes"

// bound is the figure that a workload saves at most, by what it waits for.
const bound = "most_saved"

// crowds is the figure of a node that the move would fill.
const crowds = "node_fill"

// little says that too few pages are elsewhere for a step, though moving them pays.
func (s Stake) little(v Verdict) bool {
	return v.Answer == PaysYes && s.Private <= s.Enough && s.Enough > 0
}

func (s Stake) numbers(v Verdict, limit unit.Opt[float64]) []action.Number {
	numbers := []action.Number{
		{Name: "remote_bytes", Value: unit.Measured(float64(s.Bytes), "pages by node"), Unit: "bytes"},
		{Name: "remote_loads", Value: s.RemoteRate, Unit: "1/s"},
		{Name: "saved_per_load", Value: s.Difference, Unit: "s"},
		{Name: "horizon", Value: unit.Estimated(s.Horizon.Seconds(), "configuration"), Unit: "s"},
		{Name: "cost_per_byte", Value: s.PerByte, Unit: "cpu_s"},
	}
	numbers = append(numbers, s.bounds(v, limit)...)
	if s.ratio() != 1 {
		numbers = append(numbers, action.Number{Name: "pay_ratio", Value: unit.Measured(s.ratio(), "configuration"), Unit: "times"})
	}
	if s.Undone > 0 {
		numbers = append(numbers, action.Number{Name: "undone_bytes", Value: unit.Measured(float64(s.Undone), "earlier moves"), Unit: "bytes"})
	}
	if s.little(v) {
		numbers = append(numbers, action.Number{
			Name: tooLittle, Value: unit.Measured(float64(s.Private), "pages by node"), Limit: unit.Some(float64(s.Enough)), Unit: "bytes", Decides: true,
		})
	}
	return append(numbers,
		action.Number{Name: "move_cost", Value: v.Cost, Unit: "cpu_s"},
		action.Number{Name: "move_gain", Value: v.Gain, Limit: limit, Unit: "cpu_s", Decides: v.Answer == PaysNo})
}

// bounds are the figures that make the gain another than the product of the others.
func (s Stake) bounds(v Verdict, limit unit.Opt[float64]) (numbers []action.Number) {
	if !s.CPU.Known() {
		return nil
	}
	seconds := s.Horizon.Seconds()
	if serial, ok := product(s.RemoteRate, s.Difference, seconds).Get(); ok && s.saved()*seconds < serial {
		from := "CPU time × share of its waiting"
		switch w := s.waits(); {
		case w.Other():
			from = "CPU time × what its requests explain: its stall cycles count more than waiting for memory, and are not used"
		case s.Stalled.Known():
			from = "stall cycles (" + s.Stalled.From + ") × share of its waiting"
		}
		numbers = append(numbers, action.Number{Name: bound, Value: unit.Estimated(s.saved()*seconds, from), Unit: "cpu_s"})
	}
	if s.Crowded.Known() && s.Fill.Known() {
		numbers = append(numbers, action.Number{Name: crowds, Value: s.Fill, Limit: unit.Some(1.0), Unit: "ratio", Decides: s.crowd(v, limit)},
			action.Number{Name: "crowded", Value: s.Crowded, Unit: "times"})
	}
	return numbers
}
