/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A buffer that is passed back and forth: worker 0 stores to every line of it, then worker 1
 * chases it, over and over.  One op is one line.  Each line that worker 1 reads was
 * modified in another core's cache just before (transfers), and each that worker 0
 * stores to is held by both (upgrades).
 *
 * --perf counts the chase alone; with --write the stores alone.
 *
 * A worker spins until it is its turn.  If it slept, the kernel's way to sleep and to
 * wake would be between any two laps, and would evict up to a tenth of the buffer.
 */
#include "load.h"

#define PAUSES 64 /* between two looks: some 9,000 cycles; a lap takes 25,000 and more */

static struct {
	uint64_t id; /* of the worker whose turn it is */
} turn __attribute__((aligned(HOMENODE_LINE)));

static void handoff_allocate(struct homenode_run *run)
{
	if (run->opt.threads != 2)
		homenode_fail(2, "read --threads %llu: a hand-off needs two threads; use --threads 2",
			      (unsigned long long)run->opt.threads);
	if (run->opt.ops == HOMENODE_NONE || run->opt.ops % (run->opt.ws_bytes / HOMENODE_LINE))
		homenode_fail(2, "read --ops: a hand-off passes the whole buffer; give a multiple of its %llu lines",
			      (unsigned long long)(run->opt.ws_bytes / HOMENODE_LINE));
	run->shared = homenode_region_map(&run->opt, run->opt.ws_bytes);
	turn.id = 0;
}

static void handoff_build(struct homenode_run *run)
{
	homenode_build_cycle(&run->shared, run->opt.seed, 0);
}

static void handoff_prepare(struct homenode_worker *w)
{
	w->cursor = w->run->shared.base;
}

/* The second word: the first is the chain. */
static void store_lines(const struct homenode_region *r)
{
	for (uint64_t i = 0; i < r->lines; i++)
		((volatile uint64_t *)(r->base + i * HOMENODE_LINE))[1] = i;
}

static void one_lap(struct homenode_worker *w)
{
	bool counted = w->perf.n && w->id == (w->run->opt.write ? 0 : 1);

	if (counted)
		homenode_perf_enable(&w->perf);
	if (w->id == 0)
		store_lines(&w->region);
	else
		w->cursor = homenode_chase_steps(w->cursor, w->region.lines);
	if (counted)
		homenode_perf_disable(&w->perf);
}

/*
 * Looks seldom: each look at a line that another CPU stores to is put in order with that
 * CPU, which takes the host long when it is busy.
 */
static void wait_for_turn(uint64_t id)
{
	while (__atomic_load_n(&turn.id, __ATOMIC_ACQUIRE) != id && !homenode_stop.set)
		for (int i = 0; i < PAUSES; i++)
			__builtin_ia32_pause();
}

/* Whole laps, as many as n ops need. */
static uint64_t handoff_batch(struct homenode_worker *w, uint64_t n)
{
	if (w->perf.n)
		homenode_perf_disable(&w->perf);
	for (uint64_t done = 0; done < n && !homenode_stop.set; done += w->region.lines) {
		wait_for_turn(w->id);
		if (!homenode_stop.set)
			one_lap(w);
		__atomic_store_n(&turn.id, 1 - w->id, __ATOMIC_RELEASE);
	}
	return n;
}

static uint64_t handoff_lap(const struct homenode_worker *w)
{
	return w->region.lines;
}

const struct homenode_mode homenode_handoff = {
	.name = "handoff",
	.batch = HOMENODE_NONE, /* a lap is not to be cut */
	.allocate = handoff_allocate,
	.build = handoff_build,
	.prepare = handoff_prepare,
	.batch_run = handoff_batch,
	.lap = handoff_lap,
};
