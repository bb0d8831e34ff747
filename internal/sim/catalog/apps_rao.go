// SPDX-License-Identifier: Apache-2.0

package catalog

import "homenode/internal/unit"

// ourOrder is the source of the figures of known benchmarks.
const ourOrder = "our choice, of the order commonly published for it (for SPEC: Jaleel 2007; Navarro-Torres et al., PLOS ONE 2019); no table was read off"

// nasSizes is the source of the sizes of NAS's programs.
const nasSizes = "memory: the arrays of class B (NPB's problem sizes); rates and time between barriers: our choice, from what the program does"

// nas are like the NAS parallel benchmarks with OpenMP, whose threads spin at barriers
// (Rao's parallel loads). Each thread streams over its part of the grids, the private part.
// Data that neighbours exchange, or that all read, are shared. Memory grows with the memory
// given to an instance, as with a larger class.
//
//	lu  wavefronts: many short waits, flags of neighbours; part of a plane is used again
//	sp  bt  solvers along lines: sp with little computing a line, bt with much
//	cg  a sparse matrix in a stream, and a vector at random that all threads read
//	mg  grids from fine to coarse: a stream on the fine ones
//	ft  transforms, and a transpose that reads what others wrote
//	ua  an unstructured mesh: at random, with adds to shared points
//	ep  random numbers: no memory beyond L2, barriers only at the end
var nas = []row{
	{name: "lu", about: "wavefronts over a grid; short waits for neighbours", from: nasSizes,
		cpi: 0.6, round: 20e3, memory: perThread{all: 160 * unit.MiB}, barrier: 200e3, adds: 0.05, lines: 64,
		parts: []part{
			{size: 128 * unit.KiB, apki: 20, mlp: 4, writes: 0.3},
			{size: 768 * unit.KiB, apki: 8, mlp: 3, writes: 0.3},
			{share: 0.9, apki: 7, mlp: 4, stream: true, writes: 0.4},
		}},
	{name: "sp", about: "solves along lines of a grid, little computing a line", from: nasSizes,
		cpi: 0.5, round: 20e3, memory: perThread{all: 250 * unit.MiB}, barrier: 5e6,
		parts: []part{
			{size: 128 * unit.KiB, apki: 22, mlp: 4, writes: 0.3},
			{share: 0.9, apki: 16, mlp: 5, stream: true, writes: 0.4},
		}},
	{name: "bt", about: "solves along lines of a grid, much computing a line", from: nasSizes,
		cpi: 0.5, round: 20e3, memory: perThread{all: 300 * unit.MiB}, barrier: 8e6,
		parts: []part{
			{size: 160 * unit.KiB, apki: 15, mlp: 4, writes: 0.3},
			{share: 0.9, apki: 5, mlp: 5, stream: true, writes: 0.4},
		}},
	{name: "cg", about: "a sparse matrix times a vector that all threads read at random", from: nasSizes,
		cpi: 0.6, round: 20e3, memory: perThread{all: 170 * unit.MiB}, barrier: 1e6,
		parts: []part{
			{size: 3 * unit.MiB, shared: true, apki: 40, mlp: 3, writes: 0.02}, // 75,000 doubles, some of them
			{share: 0.9, apki: 18, mlp: 6, stream: true},
		}},
	{name: "mg", about: "grids from fine to coarse", from: nasSizes,
		cpi: 0.5, round: 20e3, memory: perThread{all: 450 * unit.MiB}, barrier: 1.5e6,
		parts: []part{
			{size: 1 * unit.MiB, apki: 8, mlp: 4, writes: 0.3},
			{share: 0.9, apki: 14, mlp: 6, stream: true, writes: 0.3},
		}},
	{name: "ft", about: "transforms of lines, and a transpose of what others wrote", from: nasSizes,
		cpi: 0.5, round: 20e3, memory: perThread{all: 1600 * unit.MiB}, barrier: 100e6,
		parts: []part{
			{size: 192 * unit.KiB, apki: 20, mlp: 4, writes: 0.5},
			{share: 0.6, apki: 6, mlp: 5, stream: true, writes: 0.5},
			{share: 0.3, shared: true, apki: 3, mlp: 5, stream: true},
		}},
	{name: "ua", about: "an unstructured mesh, at random, with adds to shared points", from: nasSizes,
		cpi: 0.7, round: 20e3, memory: perThread{all: 150 * unit.MiB}, barrier: 600e3, adds: 0.2, lines: 16384,
		parts: []part{
			{size: 1 * unit.MiB, apki: 10, mlp: 2.5, writes: 0.3},
			{share: 0.6, apki: 4, mlp: 2, writes: 0.3},
			{share: 0.2, shared: true, apki: 1.5, mlp: 2, writes: 0.05},
		}},
	{name: "ep", about: "random numbers: computes", from: nasSizes,
		cpi: 0.7, round: 20e3, memory: perThread{each: 4 * unit.MiB}, barrier: 1e9,
		parts: []part{{size: 128 * unit.KiB, apki: 4, mlp: 3, writes: 0.5}}},
}

// spec2006 are like the single-threaded programs of SPEC CPU2006 of Rao's multiprogrammed
// loads. A thread is a program. The first six are known for using much memory, the last
// four for using little.
var spec2006 = []row{
	{name: "mcf", about: "chases pointers through a network, 1.6 GiB", from: ourOrder,
		cpi: 0.7, round: 20e3, memory: perThread{each: 1600 * unit.MiB},
		parts: []part{
			{size: 192 * unit.KiB, apki: 50, mlp: 3},
			{size: 12 * unit.MiB, apki: 22, mlp: 2, writes: 0.2},
			{share: 0.85, apki: 30, mlp: 2.5, writes: 0.2},
		}},
	{name: "lbm", about: "streams over two grids and writes one", from: ourOrder,
		cpi: 0.6, round: 20e3, memory: perThread{each: 400 * unit.MiB},
		parts: []part{{share: 0.9, apki: 30, mlp: 6, stream: true, writes: 0.5}}},
	{name: "milc", about: "streams over a lattice", from: ourOrder,
		cpi: 0.7, round: 20e3, memory: perThread{each: 650 * unit.MiB},
		parts: []part{
			{size: 128 * unit.KiB, apki: 8, mlp: 4},
			{share: 0.9, apki: 22, mlp: 5, stream: true, writes: 0.4},
		}},
	{name: "soplex", about: "a sparse simplex: columns in a stream, vectors again and again", from: ourOrder,
		cpi: 0.7, round: 20e3, memory: perThread{each: 250 * unit.MiB},
		parts: []part{
			{size: 3 * unit.MiB, apki: 16, mlp: 2, writes: 0.1},
			{share: 0.8, apki: 20, mlp: 3.5, stream: true, writes: 0.15},
		}},
	{name: "omnetpp", about: "an event simulator: objects at random", from: ourOrder,
		cpi: 0.8, round: 20e3, memory: perThread{each: 150 * unit.MiB},
		parts: []part{
			{size: 2 * unit.MiB, apki: 14, mlp: 1.5, writes: 0.3},
			{share: 0.8, apki: 14, mlp: 1.5, writes: 0.3},
		}},
	{name: "libquantum", about: "streams over one vector, again and again", from: ourOrder,
		cpi: 0.5, round: 20e3, memory: perThread{each: 96 * unit.MiB},
		parts: []part{{size: 64 * unit.MiB, apki: 27, mlp: 8, stream: true, writes: 0.3}}},
	{name: "gobmk", about: "plays Go: branches", from: ourOrder,
		cpi: 1.0, round: 20e3, memory: perThread{each: 32 * unit.MiB},
		parts: []part{
			{size: 192 * unit.KiB, apki: 12, mlp: 2},
			{size: 4 * unit.MiB, apki: 0.8, mlp: 1.5, writes: 0.3},
		}},
	{name: "sjeng", about: "plays chess: branches, and a large table now and then", from: ourOrder,
		cpi: 0.9, round: 20e3, memory: perThread{each: 176 * unit.MiB},
		parts: []part{
			{size: 128 * unit.KiB, apki: 6, mlp: 2},
			{share: 0.9, apki: 0.4, mlp: 1.2, writes: 0.5},
		}},
	{name: "gamess", about: "quantum chemistry: computes", from: ourOrder,
		cpi: 0.55, round: 20e3, memory: perThread{each: 64 * unit.MiB},
		parts: []part{
			{size: 96 * unit.KiB, apki: 8, mlp: 3},
			{size: 512 * unit.KiB, apki: 0.2, mlp: 3},
		}},
	{name: "povray", about: "traces rays in a small scene: computes", from: ourOrder,
		cpi: 0.7, round: 20e3, memory: perThread{each: 16 * unit.MiB},
		parts: []part{
			{size: 160 * unit.KiB, apki: 10, mlp: 2},
			{size: 512 * unit.KiB, apki: 0.1, mlp: 2},
		}},
}
