/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lines that all threads write: one op is one atomic add, or one plain store, to
 * a random line of --sharing BYTES.  64 bytes are one line, 4 KiB one page.
 */
#include "load.h"

static void share_allocate(struct homenode_run *run)
{
	run->sharing = homenode_region_map(&run->opt, run->opt.sharing_bytes);
}

static void share_prepare(struct homenode_worker *w)
{
	w->state = homenode_rng_next(&w->rng);
}

static void write_line(const struct homenode_worker *w, uint64_t line, uint64_t value)
{
	uint64_t *word = (uint64_t *)(w->run->sharing.base + line * HOMENODE_LINE);

	if (w->run->opt.write)
		__atomic_store_n(word, value, __ATOMIC_RELAXED);
	else
		__atomic_fetch_add(word, 1, __ATOMIC_RELAXED);
}

static uint64_t share_batch(struct homenode_worker *w, uint64_t n)
{
	const uint64_t lines = w->run->sharing.lines;
	uint64_t left = n, state = w->state;

	while (left && !homenode_stop.set) {
		uint64_t chunk = homenode_min(left, HOMENODE_CHUNK);

		left -= chunk;
		/* 32 random bits times the lines, high half: uniform without a division */
		for (; chunk; chunk--)
			write_line(w, ((homenode_splitmix(&state) >> 32) * lines) >> 32, chunk);
	}
	w->state = state;
	return n - left;
}

static uint64_t share_lap(const struct homenode_worker *w)
{
	return w->run->sharing.lines;
}

const struct homenode_mode homenode_share = {
	.name = "share",
	.batch = 256,
	.allocate = share_allocate,
	.prepare = share_prepare,
	.batch_run = share_batch,
	.lap = share_lap,
};
