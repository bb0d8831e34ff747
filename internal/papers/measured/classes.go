// SPDX-License-Identifier: Apache-2.0

package measured

import (
	"fmt"
	"math"
	"slices"

	"homenode/internal/policy/vmmap"
	"homenode/internal/render"
	"homenode/internal/unit"
)

// noise is a slowdown that repeats of one program have, too (trap 10 of the facts).
const noise = 0.05

// program is one that ran alone, and beside itself.
type program struct {
	name        string
	sample      vmmap.Sample
	ratio, mpki float64 // of its last-level cache, alone
	hurt        float64 // measured, by cycles an instruction
}

// programs are those with a measured slowdown: 8 threads, of the version of the pair. IS is
// left out: it is mostly one thread, and its counters are flagged.
func (d Data) programs() (all []program) {
	for _, pair := range d.CoRun {
		label, ok := pair.number("cpi_ratio")
		if pair["kind"] != "self" || pair["program"] == "IS" || !ok {
			continue
		}
		at := slices.IndexFunc(d.Solo, func(r Row) bool {
			return r["program"] == pair["program"] && r["machine"] == pair["machine"] && r["version"] == "8394557" && r["threads"] == pair["threads"]
		})
		if at < 0 {
			continue
		}
		if p, ok := ranAlone(d.Solo[at]); ok {
			p.hurt = label - 1
			all = append(all, p)
		}
	}
	return all
}

// ranAlone is a program's counters, as a sample.
func ranAlone(r Row) (program, bool) {
	v, ok := r.numbers("ipc", "l2_mpki", "l3_mpki", "l3_ratio", "stall")
	if !ok {
		return program{}, false
	}
	cycle := v[0] / 1000 // a cycle, of 1000 instructions
	s := vmmap.Sample{Requests: unit.Some(max(v[1], v[2]) * cycle), Loads: unit.Some(v[2] * cycle), Waits: unit.Some(v[4])}
	if moved, ok := r.numbers("local_MBps", "remote_MBps", "gcyc_s"); ok && moved[2] > 0 {
		s.Traffic = unit.Some((moved[0] + moved[1]) * 1e6 / lineBytes / (moved[2] * 1e9))
	}
	return program{name: r["program"], sample: s, ratio: v[3], mpki: v[2]}, true
}

// lineBytes is a line of a cache.
const lineBytes = 64

// fewest programs of which a rank correlation says something.
const fewest = 5

// Pairs compares expected hurt with the slowdown beside another program.
func Pairs(d Data) Section {
	s := Section{
		Title: "Classes: pairs of programs",
		About: "Input: as above, of the program alone on the same machine. Measured: run time beside the other program / alone. Constants are those fitted on programs beside themselves.",
		Heads: []string{"program", "beside", "expected hurt", "measured"},
	}
	solo := fit(vmmap.DefaultSolo(), d.programs())
	var hurt, ratio, label []float64
	for _, pair := range d.CoRun {
		slowdown, ok := pair.number("slowdown")
		at := slices.IndexFunc(d.Solo, func(r Row) bool {
			return r["program"] == pair["program"] && r["machine"] == pair["machine"] && r["threads"] == pair["threads"]
		})
		if pair["kind"] != "pair" || !ok || at < 0 {
			continue
		}
		if p, ok := ranAlone(d.Solo[at]); ok {
			is, _, _ := solo.Expect(p.sample, dram)
			hurt, ratio, label = append(hurt, is.Expected), append(ratio, p.ratio), append(label, slowdown-1)
			s.Rows = append(s.Rows, []string{p.name, pair["beside"], percent(is.Expected), percent(slowdown - 1)})
		}
	}
	s.Figures = map[string]float64{"pairs": float64(len(hurt))}
	if len(hurt) < fewest {
		s.Summary = []string{fmt.Sprintf("%d rows: too few to rank.", len(hurt))}
		return s
	}
	s.Summary = []string{fmt.Sprintf("Spearman with the measured slowdown, %d rows: expected hurt %s, plain miss ratio %s.", len(hurt), render.Ratio(spearman(hurt, label)), render.Ratio(spearman(ratio, label)))}
	return s
}

// fit takes the constant of lines from these programs: the median of those that others slow
// by more than noise.
func fit(f vmmap.Solo, from []program) vmmap.Solo {
	var k []float64
	one := f
	one.Lines, one.Lost = 1, 0
	for _, p := range from {
		if hurt, _, ok := one.Expect(p.sample, dram); ok && p.hurt > noise && p.mpki > 1 {
			k = append(k, p.hurt/hurt.Expected)
		}
	}
	if len(k) > 0 {
		slices.Sort(k)
		f.Lines = (k[(len(k)-1)/2] + k[len(k)/2]) / 2
	}
	return f
}

var dram = vmmap.DefaultConfig().Infer.DRAM

// Classes compares expected hurt with measured slowdowns, leaving one program out at a time.
func Classes(d Data) Section {
	s := Section{
		Title: "Classes: programs beside themselves",
		About: "Input: traffic to memory (where it was not counted: misses), misses, requests beyond private caches, cycles, instructions and stall cycles of the program alone. Measured: cycles an instruction beside itself / alone. Each program is predicted by constants fitted on the others.",
		Heads: []string{"program", "expected hurt", "interval", "measured", "class", "miss ratio"},
	}
	all := d.programs()
	var hurt, label, tied, ratio, mpki []float64
	told, right, inside := 0, 0, 0
	for i, p := range all {
		f := fit(vmmap.DefaultSolo(), slices.Delete(slices.Clone(all), i, i+1))
		is, _, _ := f.Expect(p.sample, dram)
		class, _, _ := f.Class(p.sample, dram)
		name := string(class)
		if class == vmmap.Unknown {
			name = "unknown"
		} else if told++; (class == vmmap.Sheep) == (p.hurt < vmmap.HurtLimit) {
			right++
		}
		if p.hurt >= is.Low-noise && p.hurt <= is.High+noise {
			inside++
		}
		hurt, label, ratio, mpki = append(hurt, is.Expected), append(label, p.hurt), append(ratio, p.ratio), append(mpki, p.mpki)
		if tied = append(tied, p.hurt); p.hurt < noise {
			tied[i] = 0
		}
		s.Rows = append(s.Rows, []string{p.name, percent(is.Expected), percent(is.Low) + " to " + percent(is.High), percent(p.hurt), name, render.Percent(p.ratio)})
	}
	s.Figures = map[string]float64{
		"programs": float64(len(all)), "hurt": spearman(hurt, label), "ratio": spearman(ratio, label), "mpki": spearman(mpki, label), "hurt tied": spearman(hurt, tied),
		"ratio tied": spearman(ratio, tied), "told": float64(told), "right": float64(right), "inside": float64(inside),
	}
	s.Summary = []string{
		fmt.Sprintf("Spearman with the measured slowdown, %d programs: expected hurt %s, plain miss ratio %s, misses an instruction %s.", len(all), render.Ratio(s.Figures["hurt"]), render.Ratio(s.Figures["ratio"]), render.Ratio(s.Figures["mpki"])),
		fmt.Sprintf("The same with slowdowns below %s, which is noise, taken as equal: expected hurt %s, plain miss ratio %s.", render.Percent(noise), render.Ratio(s.Figures["hurt tied"]), render.Ratio(s.Figures["ratio tied"])),
		fmt.Sprintf("Inside the interval, give or take the noise: %d of %d.", inside, len(all)),
		fmt.Sprintf("A class is told for %d of %d. Sheep or not is right for %d of these; what a program does to others was not measured apart from what they do to it, so rabbit or devil cannot be judged.", told, len(all), right),
	}
	if len(all) > 0 {
		s.Summary = slices.Insert(s.Summary, 2, d.ranking(all, label)...)
	}
	return s
}

func percent(v float64) string { return render.Signed(v, render.Percent) }

// spearman is the rank correlation; ties have the mean of their ranks.
func spearman(a, b []float64) float64 {
	x, y := ranks(a), ranks(b)
	mean := float64(len(a)-1) / 2
	xy, xx, yy := 0.0, 0.0, 0.0
	for i := range x {
		xy, xx, yy = xy+(x[i]-mean)*(y[i]-mean), xx+(x[i]-mean)*(x[i]-mean), yy+(y[i]-mean)*(y[i]-mean)
	}
	return xy / math.Sqrt(xx*yy)
}

func ranks(v []float64) []float64 {
	out := make([]float64, len(v))
	for i := range v {
		for k := range v {
			switch {
			case v[k] < v[i]:
				out[i]++
			case v[k] == v[i] && k != i:
				out[i] += 0.5
			}
		}
	}
	return out
}
