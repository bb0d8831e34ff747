/* SPDX-License-Identifier: Apache-2.0 */
/* A load that does not depend on where its memory is: registers and a 1 KiB table in L1. */
#include "load.h"

#define SPIN_ITERATIONS 256 /* per op */

static void spin_prepare(struct homenode_worker *w)
{
	for (unsigned int i = 0; i < sizeof(w->table) / sizeof(w->table[0]); i++)
		w->table[i] = homenode_rng_next(&w->rng);
	w->state = homenode_rng_next(&w->rng);
}

static uint64_t spin_batch(struct homenode_worker *w, uint64_t n)
{
	const volatile uint64_t *table = w->table;
	const bool pause = w->run->opt.pause;
	uint64_t x = w->state, left = n;

	while (left) {
		uint64_t chunk = homenode_min(left, 64); /* ops here are long: ≈ 1,500 instructions each */

		for (uint64_t i = 0; i < chunk * SPIN_ITERATIONS; i++) {
			x = x * 6364136223846793005ULL + table[x >> 57];
			if (pause)
				__builtin_ia32_pause();
		}
		left -= chunk;
		if (homenode_stop.set)
			break;
	}
	w->state = x;
	return n - left;
}

static uint64_t spin_lap(const struct homenode_worker *w)
{
	(void)w;
	return 1; /* 256 look-ups warm a table of 128 words */
}

const struct homenode_mode homenode_spin = {
	.name = "spin",
	.batch = 64,
	.prepare = spin_prepare,
	.batch_run = spin_batch,
	.lap = spin_lap,
};
