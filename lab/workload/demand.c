/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The demand mix follows MAO (Liu et al.): most runs last 20-100 µs, the rest
 * 0.4-10 ms.  Nominal time becomes work:
 *   units = µs × mhz × time factor / unit cycles,
 * where unit cycles are those of one unit with all-local memory.
 */
#include <math.h>

#include "demand.h"

void homenode_demand_init(struct homenode_demand *d, const struct homenode_run *run, uint64_t stream)
{
	const struct homenode_options *o = &run->opt;

	homenode_rng_seed(&d->rng, o->seed, HOMENODE_STREAM_DEMAND + stream);
	d->opt = o;
	d->lines = o->ws_bytes / HOMENODE_LINE;
	d->units_per_us = (double)run->clock.mhz * run->time_factor / (double)o->unit_cycles;
	/* --rate is per model-second already; a think time is a burst like any other and is scaled. */
	d->mean_gap = o->closed ? o->think_us * run->time_factor * (double)run->clock.mhz
				: (double)run->clock.mhz * 1e6 / o->rate;
}

/* Always four draws, in one order: changing one option does not shift the others. */
void homenode_demand_next(struct homenode_demand *d, struct homenode_request *r)
{
	double gap = -log1p(-homenode_rng_unit(&d->rng)) * d->mean_gap;
	bool is_short = homenode_rng_unit(&d->rng) < d->opt->short_share;
	double u = homenode_rng_unit(&d->rng), us;

	if (is_short)
		us = d->opt->short_us.low + u * (d->opt->short_us.high - d->opt->short_us.low);
	else
		us = d->opt->long_us.low * pow(d->opt->long_us.high / d->opt->long_us.low, u);
	r->gap = (uint64_t)gap;
	r->due = 0;
	r->units = (uint64_t)(us * d->units_per_us);
	if (r->units == 0)
		r->units = 1;
	r->line = homenode_rng_below(&d->rng, d->lines);
}
