/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "hist.h"

static unsigned int bucket_of(uint64_t v)
{
	unsigned int shift, i;

	if (v < 64)
		return (unsigned int)v;
	shift = 58 - (unsigned int)__builtin_clzll(v); /* leaves v >> shift in [32, 64) */
	i = shift * 32 + (unsigned int)(v >> shift);
	return i < HOMENODE_HIST_BUCKETS ? i : HOMENODE_HIST_BUCKETS - 1;
}

uint64_t homenode_hist_upper(unsigned int i)
{
	unsigned int shift;

	if (i < 64)
		return i + 1;
	shift = i / 32 - 1;
	return (uint64_t)(i - shift * 32 + 1) << shift;
}

void homenode_hist_add(struct homenode_hist *h, uint64_t cycles)
{
	h->count++;
	h->sum += cycles;
	if (cycles > h->max)
		h->max = cycles;
	h->bucket[bucket_of(cycles)]++;
}

void homenode_hist_merge(struct homenode_hist *into, const struct homenode_hist *from)
{
	into->count += from->count;
	into->sum += from->sum;
	if (from->max > into->max)
		into->max = from->max;
	for (unsigned int i = 0; i < HOMENODE_HIST_BUCKETS; i++)
		into->bucket[i] += from->bucket[i];
}

uint64_t homenode_hist_quantile(const struct homenode_hist *h, double q)
{
	uint64_t rank = (uint64_t)ceil(q * (double)h->count), seen = 0;

	for (unsigned int i = 0; i < HOMENODE_HIST_BUCKETS - 1; i++) {
		seen += h->bucket[i];
		if (seen >= rank && seen > 0)
			return homenode_hist_upper(i) < h->max ? homenode_hist_upper(i) : h->max;
	}
	return h->max;
}
