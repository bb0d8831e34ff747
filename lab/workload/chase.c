/* SPDX-License-Identifier: Apache-2.0 */
/* Dependent loads over a random cycle: one op is one load, latency-bound. */
#include "load.h"

static void chase_allocate(struct homenode_run *run)
{
	if (run->opt.shared)
		run->shared = homenode_region_map(&run->opt, run->opt.ws_bytes);
}

static void chase_build(struct homenode_run *run)
{
	if (run->shared.base)
		homenode_build_cycle(&run->shared, run->opt.seed, 0);
}

static void chase_prepare(struct homenode_worker *w)
{
	if (!w->run->shared.base)
		homenode_build_cycle(&w->region, w->run->opt.seed, w->id);
	w->cursor = w->region.base + homenode_rng_below(&w->rng, w->region.lines) * HOMENODE_LINE;
}

static uint64_t chase_batch(struct homenode_worker *w, uint64_t n)
{
	void *p = w->cursor;
	uint64_t left = n;

	while (left) {
		uint64_t chunk = homenode_min(left, HOMENODE_CHUNK);

		p = homenode_chase_steps(p, chunk);
		left -= chunk;
		if (homenode_stop.set)
			break;
	}
	w->cursor = p;
	return n - left;
}

static uint64_t chase_lap(const struct homenode_worker *w)
{
	return w->region.lines;
}

const struct homenode_mode homenode_chase = {
	.name = "chase",
	.batch = 256,
	.allocate = chase_allocate,
	.build = chase_build,
	.prepare = chase_prepare,
	.batch_run = chase_batch,
	.lap = chase_lap,
};
