/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The demand on a request server: arrival times and work. It is a pure function of seed and
 * options; placement cannot change it.
 */
#ifndef HOMENODE_DEMAND_H
#define HOMENODE_DEMAND_H

#include "load.h"

struct homenode_request {
	uint64_t gap;   /* cycles since the previous arrival, or of think time afterwards */
	uint64_t due;   /* model clock; set by the user of the request */
	uint64_t units; /* fixed work, at least 1 */
	uint64_t line;  /* where its chase starts */
};

struct homenode_demand {
	struct homenode_rng rng;
	const struct homenode_options *opt;
	double mean_gap;          /* cycles; 0 = none */
	double units_per_us;      /* nominal, time factor included */
	uint64_t lines;
};

void homenode_demand_init(struct homenode_demand *d, const struct homenode_run *run, uint64_t stream);
void homenode_demand_next(struct homenode_demand *d, struct homenode_request *r);

#endif
