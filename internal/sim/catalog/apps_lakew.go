// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"time"

	"homenode/internal/unit"
)

// Where the figures of Lakew's loads come from.
const (
	jvm2008 = "data of 32 MiB a thread: SPECjvm2008's large workloads; rates: our choice, from what the kernel's loop does"
	ourJava = "our choice, from what such a program does; not measured"
	triad   = "three lines for 32 instructions: the triad's loop, without vectors"
)

// lakew are like the loads of Lakew's VMs. Java programs allocate: a stream of writes over
// a young generation that no cache holds (a fifth of the memory). How much is published
// only in words: much for sunflow and derby, little for mpegaudio, almost none for the
// kernels.
//
//	neo4j      a graph in memory that all threads read by pointers; waits for clients
//	sockshop   a shop of many services: short requests, much code, many wake-ups
//	derby      a database in memory: decimal arithmetic, an index, locks
//	sunflow    traces rays: a scene that all read, and short-lived objects
//	fft, sor   kernels over 32 MiB a thread
//	mpegaudio  decodes music: tables that an L2 holds
//	stream     three arrays, nothing else
var lakew = []row{
	{name: "neo4j", about: "a graph in memory, by pointers", from: ourJava,
		cpi: 0.9, round: 2e6, memory: perThread{all: 1 * unit.GiB, each: 128 * unit.MiB}, think: time.Millisecond, wakes: 2,
		parts: []part{
			{size: 256 * unit.KiB, apki: 20, mlp: 2, writes: 0.2},
			{size: 4 * unit.MiB, shared: true, apki: 5, mlp: 1.5},
			{share: 0.2, apki: 1.5, mlp: 6, stream: true, writes: 1},
			{share: 0.6, shared: true, apki: 3, mlp: 1.3, writes: 0.02},
		}},
	{name: "sockshop", about: "many small services", from: ourJava,
		cpi: 1.1, round: 600e3, memory: perThread{all: 512 * unit.MiB, each: 64 * unit.MiB}, think: 2 * time.Millisecond, wakes: 6,
		parts: []part{
			{size: 512 * unit.KiB, apki: 25, mlp: 2, writes: 0.2},
			{size: 8 * unit.MiB, shared: true, apki: 4, mlp: 1.5},
			{share: 0.2, apki: 2, mlp: 6, stream: true, writes: 1},
			{share: 0.2, shared: true, apki: 1, mlp: 1.3, writes: 0.1},
		}},
	{name: "derby", about: "a database in memory", from: ourJava,
		cpi: 0.8, round: 200e3, memory: perThread{all: 512 * unit.MiB, each: 128 * unit.MiB}, adds: 0.02, lines: 256,
		parts: []part{
			{size: 256 * unit.KiB, apki: 15, mlp: 2, writes: 0.2},
			{size: 3 * unit.MiB, shared: true, apki: 3, mlp: 1.5, writes: 0.02},
			{share: 0.2, apki: 3, mlp: 6, stream: true, writes: 1},
			{share: 0.3, shared: true, apki: 1.5, mlp: 1.3, writes: 0.1},
		}},
	{name: "sunflow", about: "traces rays", from: ourJava,
		cpi: 0.7, round: 200e3, memory: perThread{all: 256 * unit.MiB, each: 64 * unit.MiB},
		parts: []part{
			{size: 192 * unit.KiB, apki: 10, mlp: 2},
			{size: 16 * unit.MiB, shared: true, apki: 3, mlp: 1.5},
			{share: 0.2, apki: 4, mlp: 6, stream: true, writes: 1},
		}},
	{name: "fft", about: "a transform over 32 MiB a thread", from: jvm2008,
		cpi: 0.6, round: 100e3, memory: perThread{each: 48 * unit.MiB},
		parts: []part{
			{size: 64 * unit.KiB, apki: 10, mlp: 3},
			{size: 32 * unit.MiB, apki: 25, mlp: 3, stream: true, writes: 0.5},
		}},
	{name: "sor", about: "relaxes a grid of 32 MiB a thread", from: jvm2008,
		cpi: 1.2, round: 100e3, memory: perThread{each: 48 * unit.MiB},
		parts: []part{
			{size: 64 * unit.KiB, apki: 15, mlp: 3}, // the rows above and below
			{size: 32 * unit.MiB, apki: 10, mlp: 3, stream: true, writes: 1},
		}},
	{name: "mpegaudio", about: "decodes music: computes", from: ourJava,
		cpi: 0.6, round: 100e3, memory: perThread{all: 128 * unit.MiB, each: 16 * unit.MiB},
		parts: []part{
			{size: 96 * unit.KiB, apki: 8, mlp: 2, writes: 0.3},
			{size: 7 * unit.MiB, shared: true, apki: 0.05, mlp: 4, stream: true}, // the music
			{share: 0.2, apki: 0.2, mlp: 6, stream: true, writes: 1},
		}},
	{name: "stream", about: "three arrays, nothing else", from: triad,
		cpi: 0.5, round: 100e3, memory: perThread{each: 256 * unit.MiB},
		parts: []part{{share: 0.9, apki: 94, mlp: 10, stream: true, writes: 0.33}}},
}

// services are servers of requests, with the figures of MAO's Feed that we chose for
// sim/scenarios/mao-feed.yaml: a model's large table, a router, a store's pointers.
var services = []row{
	{name: "predictor", about: "ranks with a large table that all threads read", from: "as sim/scenarios/mao-feed.yaml: our choice",
		cpi: 0.63, round: 5e6, memory: perThread{all: 2560 * unit.MiB, each: 16 * unit.MiB}, wakes: 1,
		parts: []part{
			{size: 1 * unit.MiB, apki: 2.4, mlp: 2, writes: 0.3},
			{share: 0.9, shared: true, apki: 4.7, mlp: 3},
		}},
	{name: "router", about: "parses and forwards", from: "as sim/scenarios/mao-feed.yaml: our choice",
		cpi: 0.58, round: 1.9e6, memory: perThread{all: 384 * unit.MiB, each: 16 * unit.MiB}, spread: 2, wakes: 4,
		parts: []part{
			{size: 512 * unit.KiB, apki: 3.2, mlp: 2, writes: 0.4},
			{share: 0.4, shared: true, apki: 0.37, mlp: 2},
		}},
	{name: "feature", about: "a store in memory, by pointers", from: "as sim/scenarios/mao-feed.yaml: our choice",
		cpi: 0.73, round: 300e3, memory: perThread{all: 1 * unit.GiB, each: 192 * unit.MiB}, wakes: 1,
		parts: []part{
			{share: 0.6, apki: 8, mlp: 1.2},
			{share: 0.2, shared: true, apki: 5.3, mlp: 1.2},
		}},
}

func rows() []row {
	var all []row
	for _, some := range [][]row{nas, spec2006, lakew, services} {
		all = append(all, some...)
	}
	return all
}
