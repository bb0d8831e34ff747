// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"fmt"

	"homenode/internal/sim/detmath"
	"homenode/internal/unit"
)

// Generate draws applications. Three in ten are quiet, four reuse data that fit a share of
// an LLC, three flood. Truth says what they really are, as that depends on the machine.
// Within a kind, each figure is drawn independently, over the range that programs have:
//
//	             quiet               reuses              floods
//	working set  32 KiB … 256 KiB    512 KiB … 3 MiB     16 … 512 MiB a thread
//	             and a little beyond (a third: shared,
//	             the caches          as much for eight)
//	accesses     2 … 20 by 1,000     8 … 50              8 … 60
//	             (0.05 … 1 beyond)
//	misses at    1 … 4               1 … 2.5             1.5 … 10
//	once
//	laps         –                   a quarter           three quarters
//
// All: 0.4 to 1.2 cycles per instruction; writes 0 to 0.5; one in eight adds to shared
// lines; most also have a young heap or logs, a small stream. Sizes, rates and misses at
// once are uniform in their logarithm.
//
// It was written before any class was inferred from a window, and was changed once, also
// before that: with a third of each kind and reuse of up to 6 MiB half of all were devils.
func Generate(seed uint64, n int) []App { return generate("g", n, seed, "app") }

// generate draws from the streams of a seed and keys; names begin with a letter.
func generate(letter string, n int, seed uint64, keys ...string) []App {
	var all []App
	for i := range n {
		r := detmath.NewRandom(seed, append(keys, fmt.Sprint(i))...)
		all = append(all, draw(&r, fmt.Sprintf("%s%d-%03d", letter, seed, i)).app())
	}
	return all
}

// between is uniform in its logarithm.
func between(r *detmath.Random, low, high float64) float64 {
	return low * detmath.Exp(r.Float()*detmath.Log(high/low))
}

func bytesBetween(r *detmath.Random, low, high unit.Bytes) unit.Bytes {
	b := unit.Bytes(between(r, float64(low), float64(high)))
	return b / (4 * unit.KiB) * (4 * unit.KiB)
}

func draw(r *detmath.Random, name string) row {
	a := row{name: name, from: "drawn", round: 20e3, cpi: 0.4 + 0.8*r.Float()}
	switch kind := r.Below(10); {
	case kind < 3:
		a.about = "drawn to be quiet"
		a.parts = quiet(r)
	case kind < 7:
		a.about = "drawn to use again what it brought into an LLC"
		a.parts = reuses(r)
	default:
		a.about = "drawn to flood an LLC"
		a.parts = floods(r)
	}
	if r.Below(8) == 0 {
		a.adds, a.lines = between(r, 0.02, 0.5), between(r, 16, 65536)
	}
	if r.Float() < 0.7 {
		a.parts = append(a.parts, part{size: 16 * unit.MiB, apki: between(r, 0.02, 0.5), mlp: 6, stream: true, writes: r.Float()})
	}
	return a
}

func quiet(r *detmath.Random) []part {
	return []part{
		{size: bytesBetween(r, 32*unit.KiB, 256*unit.KiB), apki: between(r, 2, 20), mlp: between(r, 1, 4), writes: r.Float() / 2},
		{size: bytesBetween(r, unit.MiB, 64*unit.MiB), apki: between(r, 0.05, 1), mlp: between(r, 1, 4), writes: r.Float() / 2},
	}
}

func reuses(r *detmath.Random) []part {
	p := part{
		size: bytesBetween(r, 512*unit.KiB, 3*unit.MiB), shared: r.Below(3) == 0, apki: between(r, 8, 50),
		mlp: between(r, 1, 2.5), stream: r.Below(4) == 0, writes: r.Float() / 2,
	}
	if p.shared {
		p.size *= 8
		p.writes /= 8
	}
	return []part{p, {size: 128 * unit.KiB, apki: between(r, 2, 20), mlp: between(r, 1, 4)}}
}

func floods(r *detmath.Random) []part {
	return []part{
		{size: bytesBetween(r, 16*unit.MiB, 512*unit.MiB), apki: between(r, 8, 60), mlp: between(r, 1.5, 10), stream: r.Below(4) > 0, writes: r.Float() / 2},
		{size: 128 * unit.KiB, apki: between(r, 2, 20), mlp: between(r, 1, 4)},
	}
}
