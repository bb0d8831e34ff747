/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rao's micro-benchmark (HPCA 2013): each thread chases a private working set
 * and every K steps adds atomically to a random line of a region that all share. The best
 * placement depends on working set, threads and sharing size.
 */
#include "load.h"

static void rao_allocate(struct homenode_run *run)
{
	run->sharing = homenode_region_map(&run->opt, run->opt.sharing_bytes);
}

static void rao_prepare(struct homenode_worker *w)
{
	homenode_build_cycle(&w->region, w->run->opt.seed, w->id);
	w->cursor = w->region.base + homenode_rng_below(&w->rng, w->region.lines) * HOMENODE_LINE;
	w->state = homenode_rng_next(&w->rng);
	w->position = 0;
}

static uint64_t rao_batch(struct homenode_worker *w, uint64_t n)
{
	const uint64_t every = w->run->opt.share_every, lines = w->run->sharing.lines;
	uint8_t *const sharing = w->run->sharing.base;
	uint64_t left = n, to_add = every - w->position, look = HOMENODE_CHUNK, state = w->state;
	void *p = w->cursor;

	while (left) {
		uint64_t steps = homenode_min(left, to_add);

		p = homenode_chase_steps(p, steps);
		left -= steps;
		to_add -= steps;
		if (!to_add) {
			/* 32 random bits times the lines, high half: uniform without a division */
			uint64_t line = ((homenode_splitmix(&state) >> 32) * lines) >> 32;

			__atomic_fetch_add((uint64_t *)(sharing + line * HOMENODE_LINE), 1, __ATOMIC_RELAXED);
			to_add = every;
		}
		if (look > steps) {
			look -= steps;
			continue;
		}
		look = HOMENODE_CHUNK;
		if (homenode_stop.set)
			break;
	}
	w->position = every - to_add;
	w->state = state;
	w->cursor = p;
	return n - left;
}

static uint64_t rao_lap(const struct homenode_worker *w)
{
	return w->region.lines;
}

const struct homenode_mode homenode_rao = {
	.name = "rao",
	.batch = 256,
	.allocate = rao_allocate,
	.prepare = rao_prepare,
	.batch_run = rao_batch,
	.lap = rao_lap,
};
