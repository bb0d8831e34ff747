// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"fmt"
	"strconv"

	"homenode/internal/sim/detmath"
	"homenode/internal/unit"
)

// Sharer is a workload that was drawn to learn from how placements change its speed.
type Sharer struct {
	App         // its Name is "latency-03.2": the application's, and its input
	Application string
	Kind        string
	Input       int // 1 …: the same program with other data
}

// SharersVersion is the version of every figure that GenerateSharers draws. It was fixed
// before the first model was fitted. Any change of a figure is a new version, and needs new
// models.
const SharersVersion = 1

// SharerInputs is the number of inputs of each application.
const SharerInputs = 3

// SharerKinds are the kinds, by the resource that decides their speed.
//
//	latency    chases pointers in private memory          1 … 2 misses at once
//	bandwidth  streams over private memory                4 … 10 misses at once
//	cache      reuses private data, which a part of an LLC holds
//	reads      all threads read the same data, far more than they write
//	writes     all threads modify the same lines
//	compute    needs little beyond a core's own caches
//	core       keeps a core busy and uses all of its L2, so a sibling hurts
//	mixture    two or three of the others, each weaker
func SharerKinds() []string {
	var names []string
	for _, k := range sharerKinds {
		names = append(names, k.name)
	}
	return names
}

// traits is what a kind adds to a row; by is a factor on its rates.
type traits func(a *row, r *detmath.Random, by float64)

var sharerKinds = []struct {
	name string
	add  traits
}{
	{"latency", latencyTraits}, {"bandwidth", bandwidthTraits}, {"cache", cacheTraits}, {"reads", readsTraits},
	{"writes", writesTraits}, {"compute", computeTraits}, {"core", coreTraits}, {"mixture", nil},
}

// GenerateSharers draws applications, kind after kind in turn, and SharerInputs workloads of
// each. Figures are drawn independently, sizes and rates uniformly in their logarithm, and
// rounded to four digits:
//
//  1. What the application's kind does (SharerKinds).
//  2. A program is seldom of one kind only: half of the applications also do a little of
//     another.
//  3. All have data that a core's own caches hold, and most a young heap.
//  4. One in five has threads that wait for each other, spinning.
//  5. An input changes the sizes by a factor of 0.5 to 2 and the rates by 0.8 to 1.25.
func GenerateSharers(seed uint64, applications int) []Sharer {
	var all []Sharer
	for i := range applications {
		kind := i % len(sharerKinds)
		name := fmt.Sprintf("%s-%02d", sharerKinds[kind].name, i/len(sharerKinds))
		r := detmath.NewRandom(seed, "sharer", name)
		base := drawSharer(&r, kind)
		for input := range SharerInputs {
			with := detmath.NewRandom(seed, "sharer", name, strconv.Itoa(input))
			one := base.withInput(&with, input)
			one.name = fmt.Sprintf("%s.%d", name, input+1)
			all = append(all, Sharer{App: one.app(), Application: name, Kind: sharerKinds[kind].name, Input: input + 1})
		}
	}
	return all
}

func drawSharer(r *detmath.Random, kind int) row {
	a := row{about: "drawn to share or not to share: " + sharerKinds[kind].name, from: "drawn", round: 20e3, cpi: 0.4 + 0.8*r.Float()}
	ways := len(sharerKinds) - 1                  // the last kind is the mixture
	if add := sharerKinds[kind].add; add != nil { // 1
		add(&a, r, 1)
	} else {
		for range 2 + r.Below(2) {
			sharerKinds[r.Below(ways)].add(&a, r, between(r, 0.3, 0.7))
		}
	}
	if r.Below(2) == 0 { // 2
		sharerKinds[r.Below(ways)].add(&a, r, between(r, 0.05, 0.3))
	}
	a.parts = append(a.parts, part{size: bytesBetween(r, 32*unit.KiB, 192*unit.KiB), apki: between(r, 2, 20), mlp: between(r, 1, 4), writes: r.Float() / 2}) // 3
	if r.Float() < 0.7 {
		a.parts = append(a.parts, part{size: 16 * unit.MiB, apki: between(r, 0.02, 0.5), mlp: 6, stream: true, writes: r.Float()})
	}
	if r.Below(5) == 0 { // 4
		a.barrier = between(r, 200e3, 5e6)
	}
	return a
}

// withInput is number 5. The first input is the application as it was drawn.
func (a row) withInput(r *detmath.Random, input int) row {
	larger, more := 1.0, 1.0
	if input > 0 {
		larger, more = between(r, 0.5, 2), between(r, 0.8, 1.25)
	}
	parts := make([]part, len(a.parts))
	for i, p := range a.parts {
		p.size = max(4*unit.KiB, unit.Bytes(float64(p.size)*larger)/(4*unit.KiB)*(4*unit.KiB))
		p.apki, p.mlp, p.writes = digits(p.apki*more), digits(p.mlp), digits(p.writes)
		parts[i] = p
	}
	a.parts, a.cpi, a.adds, a.lines, a.barrier = parts, digits(a.cpi), digits(a.adds*more), digits(a.lines), digits(a.barrier)
	return a
}

// digits rounds to four digits, so that the last bits of an architecture do not matter.
func digits(x float64) float64 {
	rounded, err := strconv.ParseFloat(strconv.FormatFloat(x, 'g', 4, 64), 64)
	if err != nil {
		panic(err) // FormatFloat writes what ParseFloat reads
	}
	return rounded
}

func latencyTraits(a *row, r *detmath.Random, by float64) {
	a.parts = append(a.parts, part{size: bytesBetween(r, 16*unit.MiB, 96*unit.MiB), apki: by * between(r, 3, 40), mlp: between(r, 1, 2), writes: r.Float() / 3})
}

func bandwidthTraits(a *row, r *detmath.Random, by float64) {
	a.parts = append(a.parts, part{size: bytesBetween(r, 16*unit.MiB, 96*unit.MiB), apki: by * between(r, 10, 60), mlp: between(r, 4, 10), stream: true, writes: r.Float() / 2})
}

func cacheTraits(a *row, r *detmath.Random, by float64) {
	a.parts = append(a.parts, part{size: bytesBetween(r, 256*unit.KiB, 4*unit.MiB), apki: by * between(r, 8, 50), mlp: between(r, 1, 3), stream: r.Below(4) == 0, writes: r.Float() / 2})
}

func readsTraits(a *row, r *detmath.Random, by float64) {
	a.parts = append(a.parts, part{size: bytesBetween(r, unit.MiB, 2*unit.GiB), shared: true, apki: by * between(r, 5, 40), mlp: between(r, 1, 5), writes: r.Float() / 20})
}

func writesTraits(a *row, r *detmath.Random, by float64) {
	a.adds += by * between(r, 0.05, 4)
	a.lines = max(a.lines, between(r, 8, 65536))
}

func computeTraits(a *row, r *detmath.Random, by float64) {
	a.parts = append(a.parts, part{size: bytesBetween(r, unit.MiB, 16*unit.MiB), apki: by * between(r, 0.05, 1), mlp: between(r, 1, 4), writes: r.Float() / 2})
}

func coreTraits(a *row, r *detmath.Random, by float64) {
	a.cpi = a.cpi * (1 - by*0.5)
	a.parts = append(a.parts, part{size: bytesBetween(r, 96*unit.KiB, 1536*unit.KiB), apki: by * between(r, 10, 60), mlp: between(r, 1, 4), writes: r.Float() / 2})
}
