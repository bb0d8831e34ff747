// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"homenode/internal/action"
	"homenode/internal/unit"
)

// Stake is what a move is about, in figures of one window.
type Stake struct {
	Bytes      unit.Bytes          // that would move
	RemoteRate unit.Value[float64] // remote loads/s that go to these bytes
	Difference unit.Value[float64] // seconds that each is shorter afterwards
	Horizon    time.Duration       // for how long they will be read as they are now
	PerByte    unit.Value[float64] // CPU-seconds
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

// Verdict is the answer, and the sum it comes from.
type Verdict struct {
	Answer Answer              `json:"answer"`
	Bytes  unit.Bytes          `json:"bytes"`
	Gain   unit.Value[float64] `json:"gain_cpu_s"`
	Cost   unit.Value[float64] `json:"cost_cpu_s"`
	// Sum is the whole calculation in a sentence, Short what comes of it.
	Sum     string          `json:"sum"`
	Short   string          `json:"short"`
	Numbers []action.Number `json:"numbers"`
}

// Pays weighs a move.
//
//  1. Gain: loads/s × seconds saved a load × horizon, in CPU-seconds. Two assumptions:
//     it goes on as in this window, and a CPU waits for each load in full. Loads that
//     overlap save less, so this is the most that can be gained.
//  2. Cost: bytes × CPU-seconds a byte, of the bytes that move and of those whose
//     earlier move would be undone.
//  3. Yes, if the gain is more than Ratio times the cost. A figure that is unknown is
//     no 0: then nobody can tell, except that a load that gets no shorter never pays.
func Pays(s Stake) Verdict {
	v, limit := s.weigh()
	v.Sum, v.Short = s.sum(v), s.short(v)
	v.Numbers = s.numbers(v, limit)
	return v
}

// Weigh is Pays in figures alone, for those who ask often and read nothing: Short
// says no more than the answer, Sum and Numbers are empty.
func Weigh(s Stake) Verdict {
	v, _ := s.weigh()
	switch v.Answer {
	case PaysYes:
		v.Short = "moving pays"
	case PaysNo:
		v.Short = "moving does not pay"
	default:
		v.Short = "whether moving pays cannot be told"
	}
	return v
}

// weigh is numbers 1 to 3 of Pays; limit is what the gain must exceed.
func (s Stake) weigh() (v Verdict, limit unit.Opt[float64]) {
	v = Verdict{Answer: PaysCannotTell, Bytes: s.Bytes}
	seconds := s.Horizon.Seconds()
	v.Gain = product(s.RemoteRate, s.Difference, seconds) // 1
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
	case ok && difference <= 0:
		v.Answer = PaysNo
	case okGain && okLimit && gain > least:
		v.Answer = PaysYes
	case okGain && okLimit:
		v.Answer = PaysNo
	}
	return v, limit
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

// sum is "its remote memory: 512MiB; 1.2 M remote loads/s × 58 ns × 600 s = 41.8
// CPU-s saved, 0.33 CPU-s cost".
func (s Stake) sum(v Verdict) string {
	text := fmt.Sprintf("its remote memory: %v; ", s.Bytes)
	if v.Gain.Known() {
		text += fmt.Sprintf("%s remote loads/s × %s ns × %s s = %s CPU-s saved", count(s.RemoteRate.Or(0)), short(s.Difference.Or(0)*1e9), short(s.Horizon.Seconds()), short(v.Gain.Or(0)))
	} else {
		text += "what it would save is unknown (" + v.Gain.From + ")"
	}
	if !v.Cost.Known() {
		return text + ", the cost is unknown (" + v.Cost.From + ")"
	}
	text += ", " + short(v.Cost.Or(0)) + " CPU-s cost"
	if s.Undone > 0 {
		text += fmt.Sprintf(" (with that of %v that were moved here before)", s.Undone)
	}
	return text
}

// little says that too few pages are elsewhere for a step, though moving them pays.
func (s Stake) little(v Verdict) bool {
	return v.Answer == PaysYes && s.Private <= s.Enough && s.Enough > 0
}

// short is "moving 3.2GiB would cost 2.1 CPU-s and save 0.4 in 10m0s".
func (s Stake) short(v Verdict) string {
	if v.Answer == PaysCannotTell {
		why := v.Gain.From
		if v.Gain.Known() {
			why = v.Cost.From
		}
		return fmt.Sprintf("whether moving %v pays cannot be told: %s", s.Bytes, why)
	}
	if s.little(v) {
		return fmt.Sprintf("%v of private memory are elsewhere, and no step is made for %v or less", s.Private, s.Enough)
	}
	gain := "nothing"
	if g, ok := v.Gain.Get(); ok && g > 0 {
		gain = short(g)
	}
	cost := "an unknown time"
	if c, ok := v.Cost.Get(); ok {
		cost = short(c) + " CPU-s"
	}
	text := fmt.Sprintf("moving %v would cost %s and save %s in %v", s.Bytes, cost, gain, s.Horizon)
	if s.ratio() != 1 {
		text += fmt.Sprintf(" (pay_ratio %s)", short(s.ratio()))
	}
	return text
}

func (s Stake) numbers(v Verdict, limit unit.Opt[float64]) []action.Number {
	numbers := []action.Number{
		{Name: "remote_bytes", Value: unit.Measured(float64(s.Bytes), "pages by node"), Unit: "bytes"},
		{Name: "remote_loads", Value: s.RemoteRate, Unit: "1/s"},
		{Name: "saved_per_load", Value: s.Difference, Unit: "s"},
		{Name: "horizon", Value: unit.Estimated(s.Horizon.Seconds(), "configuration"), Unit: "s"},
		{Name: "cost_per_byte", Value: s.PerByte, Unit: "cpu_s"},
	}
	if s.Undone > 0 {
		numbers = append(numbers, action.Number{Name: "undone_bytes", Value: unit.Measured(float64(s.Undone), "earlier moves"), Unit: "bytes"})
	}
	if s.little(v) {
		numbers = append(numbers, action.Number{
			Name: "private_remote_bytes", Value: unit.Measured(float64(s.Private), "pages by node"), Limit: unit.Some(float64(s.Enough)), Unit: "bytes", Decides: true,
		})
	}
	return append(numbers,
		action.Number{Name: "move_cost", Value: v.Cost, Unit: "cpu_s"},
		action.Number{Name: "move_gain", Value: v.Gain, Limit: limit, Unit: "cpu_s", Decides: v.Answer == PaysNo})
}

// count is a rate for people: "1.2 M", "300 k", "25".
func count(v float64) string {
	for _, scale := range []struct {
		of   float64
		name string
	}{{1e9, " G"}, {1e6, " M"}, {1e3, " k"}} {
		if v >= scale.of {
			return short(v/scale.of) + scale.name
		}
	}
	return short(v)
}

// short keeps three digits without an exponent where that is short.
func short(v float64) string {
	digits := 0
	for limit := 100.0; digits < 2 && v < limit && v > -limit; limit /= 10 {
		digits++
	}
	if v != 0 && v < 0.01 && v > -0.01 {
		return strconv.FormatFloat(v, 'g', 2, 64)
	}
	text := strconv.FormatFloat(v, 'f', digits, 64)
	if digits > 0 {
		text = strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
	}
	return text
}
