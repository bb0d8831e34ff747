// SPDX-License-Identifier: Apache-2.0

package arena

import (
	"math"
	"strings"

	"homenode/internal/sim/arena"
)

// dice is a small generator, so the fixture is the same everywhere.
type dice uint64

func (d *dice) roll() float64 {
	*d += 0x9e3779b97f4a7c15 // splitmix64
	z := uint64(*d)
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return float64((z^z>>31)>>40) / (1 << 24)
}

// fixture is made up: it looks like a result, and is not one.
func fixture() arena.Result {
	r := arena.Result{
		Schema: arena.Schema, How: arena.How, Name: "made-up", About: "A fixture: its figures come from dice.", Against: "none", Seeds: []uint64{1, 2, 3, 4, 5, 6},
		Machines: []arena.Named{
			{Name: "dual-skylake", About: "Two sockets.", From: "published figures", Nodes: 2, CPUs: 112}, {Name: "torus-288", About: "Six servers in one.", From: "a guess", Nodes: 36, CPUs: 288},
		},
		Mixes: []arena.Named{{Name: "parallel", About: "Loops that wait for each other.", LastsS: 60, WarmupS: 20, StepS: 0.01}, {Name: "insensitive", About: "Nothing to gain.", LastsS: 60, StepS: 0.01}},
	}
	policies := []struct {
		name   string
		speed  [2]float64 // under the mixes
		moves  int
		period float64
	}{{"none", [2]float64{1, 1}, 0, 0}, {"interleave", [2]float64{0.8, 0.95}, 0, 0}, {"hand", [2]float64{1.5, 1.001}, 4, 1}, {"brm", [2]float64{1.45, 0.99}, 812, 0.05}, {"sm-ipc", [2]float64{1.48, 1}, 12, 1}}
	for _, p := range policies {
		r.Policies = append(r.Policies, arena.Named{Name: p.name, About: "What " + p.name + " is.", PeriodS: p.period})
	}
	for _, m := range r.Machines {
		for k, x := range r.Mixes {
			for _, p := range policies {
				for _, seed := range r.Seeds {
					d := dice(seed*100 + uint64(len(p.name)))
					demand := dice(seed)
					c := arena.Cell{Machine: m.Name, Mix: x.Name, Policy: p.name, Seed: seed, Moves: p.moves, Pins: p.moves, MovedB: float64(p.moves) * 1e7, LocalRatio: math.Round(400*(0.5+d.roll()/3)) / 400}
					for i, id := range []string{"/derby", "/fft"} {
						ops := math.Round(1000*(1+demand.roll())*math.Pow(p.speed[k], float64(m.Nodes)/4)*(1+0.02*d.roll())*float64(i+1)) / 8
						c.Apps = append(c.Apps, arena.App{ID: id, Service: id[1:], Threads: 4, Ops: ops, P99S: 1 / ops, CPUPerOp: 4 / ops, LocalRatio: c.LocalRatio, Fairness: 0.75})
					}
					r.Cells = append(r.Cells, c)
				}
			}
		}
	}
	r.Rows = []arena.Row{
		{Paper: "Rao 2013", Statement: "BRM is faster than the default by up to 31.7 %.", Theirs: "31.7 %", Ours: "28.1 %", Verdict: arena.Confirmed, Sentence: "The best of 12 programs gained 28.1 % (26.9 to 29.0)."},
		{Paper: "Rao 2013", Statement: "Inside a VM the topology may be wrong.", Theirs: "–", Ours: "–", Verdict: arena.CannotTest, Sentence: "Guests are not simulated."},
		{Paper: "Lakew 2025", Statement: "Derby runs 215 times as fast under SM-IPC as under the default.", Theirs: "215×", Ours: "3.4×", Verdict: arena.NotConfirmed, Sentence: "Faster, but by far less: our default strands fewer threads."},
	}
	return r
}

const evil = "\x1b[31m<script>alert(1)</script>\u202e \"&'\n"

// hostile has names from an untrusted source.
func hostile() arena.Result {
	r := fixture()
	r.Name, r.About, r.Against = evil, evil, evil
	r.Machines[0] = arena.Named{Name: evil, About: evil, From: evil}
	r.Mixes[1] = arena.Named{Name: evil + strings.Repeat("long", 30), About: evil}
	r.Policies[0] = arena.Named{Name: evil, About: evil}
	for i := range r.Cells {
		c := &r.Cells[i]
		if c.Machine == "dual-skylake" {
			c.Machine = evil
		}
		if c.Mix == "insensitive" {
			c.Mix = r.Mixes[1].Name
		}
		if c.Policy == "none" {
			c.Policy = evil
		}
		c.Apps[0].ID = "/" + evil
		c.Apps[1] = arena.App{ID: "/z", Ops: 1}
	}
	for i := range r.Rows {
		r.Rows[i] = arena.Row{Paper: evil, Statement: evil, Theirs: evil, Ours: evil, Verdict: arena.Confirmed, Sentence: evil}
	}
	return r
}

// few has two seeds: no intervals.
func few() arena.Result {
	r := fixture()
	r.Seeds = r.Seeds[:2]
	var cells []arena.Cell
	for _, c := range r.Cells {
		if c.Seed <= 2 && c.Machine == "dual-skylake" {
			cells = append(cells, c)
		}
	}
	r.Cells, r.Machines, r.Rows = cells, r.Machines[:1], nil
	return r
}

// starved has an app that one policy starves, and policies that did nothing at all.
func starved() arena.Result {
	r := fixture()
	for i := range r.Cells {
		switch c := &r.Cells[i]; c.Policy {
		case "brm":
			c.Apps[0].Ops, c.Apps[0].P99S, c.Apps[0].CPUPerOp = 0, 0, 0
		case "hand":
			c.Apps = nil
		case "sm-ipc":
			c.Apps[0].Ops, c.Apps[1].Ops, c.MovedB = 1e17, 1e17, 1e17
		}
	}
	return r
}
