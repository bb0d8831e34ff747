/* SPDX-License-Identifier: Apache-2.0 */
/* The histogram against a brute-force version: a sorted array. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "hist.h"
#include "rng.h"

#define SAMPLES 5000

static int ascending(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* A quantile may lie above the exact one by one bucket: at most 5 %, or 1 cycle. */
static int check_seed(uint64_t seed)
{
	static const double q[] = { 0.001, 0.5, 0.9, 0.95, 0.99, 0.999, 1 };
	static uint64_t v[SAMPLES];
	struct homenode_hist h = { 0 }, half = { 0 };
	struct homenode_rng rng;

	homenode_rng_seed(&rng, seed, 0);
	for (int i = 0; i < SAMPLES; i++) {
		v[i] = homenode_rng_next(&rng) >> (16 + homenode_rng_below(&rng, 48));
		homenode_hist_add(i % 2 ? &h : &half, v[i]);
	}
	homenode_hist_merge(&h, &half);
	qsort(v, SAMPLES, sizeof(v[0]), ascending);
	for (unsigned int i = 0; i < sizeof(q) / sizeof(q[0]); i++) {
		uint64_t exact = v[(int)ceil(q[i] * SAMPLES) - 1], got = homenode_hist_quantile(&h, q[i]);

		if (got < exact || (double)got > 1.05 * (double)exact + 1) {
			printf("seed %llu quantile %g: %llu, exact %llu\n", (unsigned long long)seed, q[i],
			       (unsigned long long)got, (unsigned long long)exact);
			return 1;
		}
	}
	return h.count != SAMPLES || h.max != v[SAMPLES - 1];
}

int main(void)
{
	for (uint64_t seed = 1; seed <= 300; seed++)
		if (check_seed(seed))
			return 1;
	return 0;
}
