/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A log-linear histogram of model cycles: exact below 64, then 32 buckets per
 * octave, so a bucket is at most 1/32 = 3.2 % wide.
 */
#ifndef HOMENODE_HIST_H
#define HOMENODE_HIST_H

#include <stdint.h>

#define HOMENODE_HIST_BUCKETS 1440 /* up to 2^49 cycles; larger values share the last */

struct homenode_hist {
	uint64_t count, sum, max; /* cycles */
	uint64_t bucket[HOMENODE_HIST_BUCKETS];
};

void homenode_hist_add(struct homenode_hist *h, uint64_t cycles);
void homenode_hist_merge(struct homenode_hist *into, const struct homenode_hist *from);
/* First value above bucket i: its exclusive upper bound. */
uint64_t homenode_hist_upper(unsigned int i);
/* Upper bound of the bucket that holds quantile q in (0, 1], never above max; count must not be 0. */
uint64_t homenode_hist_quantile(const struct homenode_hist *h, double q);

#endif
