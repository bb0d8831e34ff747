/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Own random numbers, so that a seed means the same run everywhere.
 * splitmix64 (Vigna) seeds and serves inner loops (one register of state);
 * xoshiro256** (Blackman, Vigna) serves the rest.
 */
#ifndef HOMENODE_RNG_H
#define HOMENODE_RNG_H

#include <stdint.h>

struct homenode_rng {
	uint64_t s[4];
};

/* Streams of one seed: disjoint ranges, so that no two users share one. */
enum {
	HOMENODE_STREAM_WORKER = 1,       /* + worker: start points, shared lines */
	HOMENODE_STREAM_REGION = 1 << 20, /* + region: permutations */
	HOMENODE_STREAM_DEMAND = 2 << 20, /* + worker, or 0 of the dispatcher */
};

static inline uint64_t homenode_splitmix(uint64_t *state)
{
	uint64_t z = (*state += 0x9e3779b97f4a7c15ULL);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
	return z ^ (z >> 31);
}

static inline void homenode_rng_seed(struct homenode_rng *r, uint64_t seed, uint64_t stream)
{
	uint64_t s = stream, mixed = seed ^ homenode_splitmix(&s);

	for (int i = 0; i < 4; i++)
		r->s[i] = homenode_splitmix(&mixed);
}

static inline uint64_t homenode_rng_next(struct homenode_rng *r)
{
	uint64_t *s = r->s, x = s[1] * 5, t = s[1] << 17;
	uint64_t result = ((x << 7) | (x >> 57)) * 9;

	s[2] ^= s[0];
	s[3] ^= s[1];
	s[1] ^= s[2];
	s[0] ^= s[3];
	s[2] ^= t;
	s[3] = (s[3] << 45) | (s[3] >> 19);
	return result;
}

/* Uniform in [0, n) by multiplication; the bias is below n / 2^64. */
static inline uint64_t homenode_rng_below(struct homenode_rng *r, uint64_t n)
{
	return (uint64_t)(((unsigned __int128)homenode_rng_next(r) * n) >> 64);
}

/* Uniform in [0, 1). */
static inline double homenode_rng_unit(struct homenode_rng *r)
{
	return (double)(homenode_rng_next(r) >> 11) * 0x1p-53;
}

#endif
