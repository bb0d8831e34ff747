/* SPDX-License-Identifier: Apache-2.0 */
/* Sequential lines over a private working set: one op is one line, bandwidth-bound. */
#include "load.h"

/* --triad: a, b and c are equal thirds of the working set; an op is one line of a. */
static uint64_t stream_lap(const struct homenode_worker *w)
{
	return w->run->opt.triad ? w->region.lines / 3 : w->region.lines;
}

static double *triad_array(const struct homenode_worker *w, unsigned int which)
{
	return (double *)(w->region.base + which * stream_lap(w) * HOMENODE_LINE);
}

static void stream_prepare(struct homenode_worker *w)
{
	uint64_t doubles = stream_lap(w) * HOMENODE_LINE / sizeof(double);

	w->position = 0;
	if (!w->run->opt.triad)
		return;
	/* The touch words would be denormal numbers, which are slow on real cores. */
	for (uint64_t i = 0; i < doubles && !homenode_stop.set; i++) {
		triad_array(w, 0)[i] = 0.5;
		triad_array(w, 1)[i] = 1.0;
		triad_array(w, 2)[i] = 2.0;
	}
}

static void read_lines(const uint8_t *p, uint64_t n)
{
	for (; n; n--, p += HOMENODE_LINE)
		(void)*(const volatile uint64_t *)p;
}

static void write_lines(uint8_t *p, uint64_t n)
{
	for (; n; n--, p += HOMENODE_LINE)
		*(volatile uint64_t *)p = n;
}

static void triad_lines(const struct homenode_worker *w, uint64_t n)
{
	uint64_t first = w->position * HOMENODE_LINE / sizeof(double), count = n * HOMENODE_LINE / sizeof(double);
	double *restrict a = triad_array(w, 0) + first;
	const double *restrict b = triad_array(w, 1) + first, *restrict c = triad_array(w, 2) + first;

	for (uint64_t i = 0; i < count; i++)
		a[i] = b[i] + 3.0 * c[i];
}

static uint64_t stream_batch(struct homenode_worker *w, uint64_t n)
{
	uint64_t lap = stream_lap(w), left = n;

	while (left) {
		uint64_t chunk = homenode_min(homenode_min(left, HOMENODE_CHUNK), lap - w->position);
		uint8_t *p = w->region.base + w->position * HOMENODE_LINE;

		if (w->run->opt.triad)
			triad_lines(w, chunk);
		else if (w->run->opt.write)
			write_lines(p, chunk);
		else
			read_lines(p, chunk);
		left -= chunk;
		w->position += chunk;
		if (w->position == lap)
			w->position = 0;
		if (homenode_stop.set)
			break;
	}
	return n - left;
}

const struct homenode_mode homenode_stream = {
	.name = "stream",
	.batch = 256,
	.prepare = stream_prepare,
	.batch_run = stream_batch,
	.lap = stream_lap,
};
