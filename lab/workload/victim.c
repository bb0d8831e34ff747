/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that a mover may disturb: its threads work on several kinds of memory at once and
 * time every small operation.
 *
 *   op:  --loads dependent loads of the own working set (private memory)
 *        every --file-every-th op as many loads of random lines of the mapped file,
 *        every --map-every-th maps, touches and unmaps a page: this takes the lock of the address
 *        space for writing, which a mover's long call delays
 *
 * Each op's time goes into the histogram of the phase in which it began, and, with the
 * ops, into a series of windows, which shows what the victim did in each part of a move. Time
 * while the lab's model was off is left out. A thread with a CPU of its own reads that CPU's
 * model clock, which ticks with each block of instructions. Any other thread reads the shared
 * clock, which advances in steps.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>

#include "load.h"

#define WINDOW_MS 10   /* model time; shorter: fewer ops in a window, and more noise */
#define WINDOWS   8192 /* 82 model-seconds; later ops belong to no window */

struct series {
	uint32_t ops[WINDOWS], longest[WINDOWS]; /* longest: cycles */
	uint32_t past; /* ops before the first window, or after the last */
};

static struct series *series; /* of each worker */
static uint64_t series_start; /* cycles */
static struct homenode_region file;

static void victim_allocate(struct homenode_run *run)
{
	const struct homenode_options *o = &run->opt;

	series = homenode_map(o, o->threads * sizeof(*series), HOMENODE_THP_OFF);
	if (!o->shared_bytes)
		return;
	if (!o->file)
		homenode_fail(2, "read victim options: --shared-bytes without --file; name the file to map");
	file = homenode_region_map(o, o->shared_bytes);
	homenode_touch_slice(&file, 0, 1);
}

static void victim_prepare(struct homenode_worker *w)
{
	homenode_build_cycle(&w->region, w->run->opt.seed, w->id);
	w->cursor = w->region.base;
}

static uint64_t op_clock(const struct homenode_worker *w)
{
	const struct homenode_options *o = &w->run->opt;

	if (o->cpus.n)
		return homenode_clock_cpu(&w->run->clock, o->cpus.id[w->id % o->cpus.n]);
	if (o->bind_cpu != HOMENODE_NONE)
		return homenode_clock_cpu(&w->run->clock, o->bind_cpu);
	return homenode_clock_now(&w->run->clock);
}

/* Random lines: another victim may use the file, too, so it holds no chain. */
static void read_file(struct homenode_worker *w)
{
	for (uint64_t i = 0; i < w->run->opt.loads; i++)
		(void)*(volatile uint64_t *)(file.base + homenode_rng_below(&w->rng, file.lines) * HOMENODE_LINE);
}

static void map_page(void)
{
	volatile uint64_t *p = mmap(NULL, HOMENODE_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		homenode_fail(1, "map a page: %s; raise --map-every", strerror(errno));
	*p = 1;
	munmap((void *)p, HOMENODE_PAGE);
}

static void one_op(struct homenode_worker *w, uint64_t n)
{
	const struct homenode_options *o = &w->run->opt;

	w->cursor = homenode_chase_steps(w->cursor, o->loads);
	if (file.base && n % o->file_every == 0)
		read_file(w);
	if (o->map_every && n % o->map_every == 0)
		map_page();
}

/* By the shared clock, which is never set back. */
static uint64_t first_counted(const struct homenode_worker *w)
{
	uint64_t none = 0;

	if (!__atomic_load_n(&series_start, __ATOMIC_RELAXED))
		__atomic_compare_exchange_n(&series_start, &none, homenode_clock_now(&w->run->clock), false, __ATOMIC_SEQ_CST,
					    __ATOMIC_SEQ_CST);
	return series_start;
}

static void note(struct homenode_worker *w, uint64_t end, uint64_t took)
{
	struct series *s = &series[w->id];
	uint64_t start, window;

	homenode_hist_add(homenode_tally_latency(w), took);
	if (!homenode_clock_counts(&w->run->clock))
		return;
	start = first_counted(w);
	window = (end - start) / (WINDOW_MS * 1000 * w->run->clock.mhz);
	if (end < start || window >= WINDOWS) {
		s->past++;
		return;
	}
	s->ops[window]++;
	if (took > s->longest[window])
		s->longest[window] = (uint32_t)homenode_min(took, UINT32_MAX);
}

static void victim_work(struct homenode_worker *w)
{
	uint64_t begin = op_clock(w), left = w->run->opt.ops;

	homenode_tally_look(w);
	for (uint64_t n = 1; left && !homenode_stop.set; n++) {
		uint64_t end;

		one_op(w, n);
		end = op_clock(w);
		note(w, end, end - begin);
		homenode_tally_credit(w, 1, 1);
		begin = op_clock(w);
		if (left != HOMENODE_NONE)
			left--;
	}
}

static uint64_t last_window(const struct homenode_run *run)
{
	uint64_t n = 0;

	for (uint64_t t = 0; t < run->opt.threads; t++)
		for (uint64_t i = n; i < WINDOWS; i++)
			if (series[t].ops[i])
				n = i + 1;
	return n;
}

static uint64_t window_sum(const struct homenode_run *run, uint64_t i, bool longest)
{
	uint64_t sum = 0, most = 0;

	for (uint64_t t = 0; t < run->opt.threads; t++) {
		sum += series[t].ops[i];
		if (series[t].longest[i] > most)
			most = series[t].longest[i];
	}
	return longest ? most : sum;
}

static void victim_report(FILE *f, const struct homenode_run *run)
{
	uint64_t n = last_window(run), past = 0;

	for (uint64_t t = 0; t < run->opt.threads; t++)
		past += series[t].past;
	fprintf(f, ",\"series\":{\"start_cycles\":%" PRIu64 ",\"window_cycles\":%" PRIu64 ",\"past_ops\":%" PRIu64, series_start,
		WINDOW_MS * 1000 * run->clock.mhz, past);
	for (int longest = 0; longest < 2; longest++) {
		fputs(longest ? ",\"longest_cycles\":[" : ",\"ops\":[", f);
		for (uint64_t i = 0; i < n; i++)
			fprintf(f, "%s%" PRIu64, i ? "," : "", window_sum(run, i, longest));
		fputc(']', f);
	}
	fputc('}', f);
}

const struct homenode_mode homenode_victim = {
	.name = "victim",
	.has_latency = true,
	.private_region = true,
	.allocate = victim_allocate,
	.prepare = victim_prepare,
	.work = victim_work,
	.report = victim_report,
};
