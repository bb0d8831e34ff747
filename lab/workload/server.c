/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A request server over one dataset.
 *
 *   open loop:   dispatcher (last thread) ──► bounded FIFO ──► workers
 *   closed loop: each worker: request, think, request, …
 *
 * A request is a fixed number of units (loads + register work), so placement
 * changes its time, not its work.  Latency counts from the due time, so it includes the delay of
 * a late dispatcher or of a worker that waits for a CPU (no coordinated omission).
 */
#include <pthread.h>
#include <stdlib.h>
#include <sys/prctl.h>

#include "demand.h"

#define UNIT_BATCH 8 /* units between two checks of phase and clock: ≈ 16,000 cycles */

static struct {
	pthread_mutex_t lock;
	pthread_cond_t filled;
	struct homenode_request *ring;
	uint64_t head, count, capacity;
	bool closed; /* no arrival follows */
} queue = { .lock = PTHREAD_MUTEX_INITIALIZER, .filled = PTHREAD_COND_INITIALIZER };

static void server_allocate(struct homenode_run *run)
{
	const struct homenode_options *o = &run->opt;

	run->shared = homenode_region_map(o, o->ws_bytes);
	if (o->closed)
		return;
	run->nthreads++; /* the dispatcher */
	queue.capacity = o->queue != HOMENODE_NONE ? o->queue : 64 * o->threads;
	queue.ring = homenode_map(o, queue.capacity * sizeof(*queue.ring), HOMENODE_THP_DEFAULT);
}

static void server_build(struct homenode_run *run)
{
	homenode_build_cycle(&run->shared, run->opt.seed, 0);
}

static void server_wake(struct homenode_run *run)
{
	(void)run;
	pthread_mutex_lock(&queue.lock);
	pthread_cond_broadcast(&queue.filled);
	pthread_mutex_unlock(&queue.lock);
}

/* False: the queue was full. */
static bool queue_push(const struct homenode_request *r)
{
	bool fits;

	pthread_mutex_lock(&queue.lock);
	fits = queue.count < queue.capacity;
	if (fits) {
		queue.ring[(queue.head + queue.count++) % queue.capacity] = *r;
		pthread_cond_signal(&queue.filled); /* one wake per request */
	}
	pthread_mutex_unlock(&queue.lock);
	return fits;
}

/* Blocks; false: no more requests will come. */
static bool queue_pop(struct homenode_request *r)
{
	bool got = false;

	pthread_mutex_lock(&queue.lock);
	while (!queue.count && !queue.closed && !homenode_stop.set)
		pthread_cond_wait(&queue.filled, &queue.lock);
	if (queue.count && !homenode_stop.set) {
		*r = queue.ring[queue.head];
		queue.head = (queue.head + 1) % queue.capacity;
		queue.count--;
		got = true;
	}
	pthread_mutex_unlock(&queue.lock);
	return got;
}

/* n register instructions, none of which touches memory (18 + dec + jnz = 20 per round). */
static inline void register_work(uint64_t n)
{
	uint64_t rounds = n / 20, rest = n % 20 / 2, x = n;

	if (rounds)
		__asm__ volatile("1:\n\t"
				 ".rept 9\n\t"
				 "leaq 7(%0), %0\n\t"
				 "xorq %1, %0\n\t"
				 ".endr\n\t"
				 "decq %1\n\t"
				 "jnz 1b"
				 : "+r"(x), "+r"(rounds)
				 :
				 : "cc");
	if (rest)
		__asm__ volatile("1:\n\t"
				 "decq %0\n\t"
				 "jnz 1b"
				 : "+r"(rest)
				 :
				 : "cc");
}

/* Units are credited as they are done: a request over a phase boundary is split fairly. */
static void serve(struct homenode_worker *w, const struct homenode_request *r)
{
	const struct homenode_options *o = &w->run->opt;
	void *p = w->region.base + r->line * HOMENODE_LINE;
	uint64_t left = r->units;

	while (left && !homenode_stop.set) {
		uint64_t batch = homenode_min(left, UNIT_BATCH);
		struct homenode_hist *latency = homenode_tally_latency(w);

		for (uint64_t i = 0; i < batch; i++) {
			p = homenode_chase_steps(p, o->loads_per_unit);
			register_work(o->alu_per_unit);
		}
		left -= batch;
		homenode_tally_credit(w, left == 0, batch);
		if (!left)
			homenode_hist_add(latency, w->now > r->due ? w->now - r->due : 0);
	}
	w->cursor = p;
}

/*
 * Sleeps towards a model deadline and keeps the phase's times fresh; false:
 * stopped.  While the clock stands still (model off, or between two rounds of its controller) the
 * naps double up to 1 ms, so that waiting costs no CPU.
 */
static bool sleep_until(struct homenode_worker *w, uint64_t deadline)
{
	uint64_t least_us = 1;

	homenode_tally_look(w);
	while (w->now < deadline && !homenode_stop.set) {
		uint64_t before = w->now;

		homenode_clock_nap(&w->run->clock, deadline, least_us);
		homenode_tally_look(w);
		least_us = w->now == before ? homenode_min(2 * least_us, 1024) : 1;
	}
	return !homenode_stop.set;
}

/* If it is late, it issues all due requests at once, each with its own due time. */
static void dispatch(struct homenode_worker *w)
{
	struct homenode_demand d;
	struct homenode_request r;
	uint64_t due = w->now, limit = w->run->opt.ops;

	homenode_demand_init(&d, w->run, 0);
	for (uint64_t i = 0; i < limit; i++) {
		homenode_demand_next(&d, &r);
		due += r.gap;
		r.due = due;
		if (w->now < due && !sleep_until(w, due))
			break;
		if (homenode_stop.set)
			break;
		w->slot->requests++;
		if (!queue_push(&r))
			w->slot->dropped++;
	}
	pthread_mutex_lock(&queue.lock);
	queue.closed = true;
	pthread_cond_broadcast(&queue.filled);
	pthread_mutex_unlock(&queue.lock);
}

static void serve_open(struct homenode_worker *w)
{
	struct homenode_request r;

	while (queue_pop(&r)) {
		homenode_tally_look(w); /* the phase may have changed while it waited */
		serve(w, &r);
	}
}

static void serve_closed(struct homenode_worker *w)
{
	struct homenode_demand d;
	struct homenode_request r;
	uint64_t due = w->now, limit = w->run->opt.ops;

	homenode_demand_init(&d, w->run, 1 + w->id);
	for (uint64_t i = 0; i < limit && !homenode_stop.set; i++) {
		homenode_demand_next(&d, &r);
		r.due = due; /* the end of the think time: waiting for a CPU counts */
		w->slot->requests++;
		serve(w, &r);
		due = w->now + r.gap;
		if (r.gap && !sleep_until(w, due))
			break;
	}
}

static void server_work(struct homenode_worker *w)
{
	prctl(PR_SET_TIMERSLACK, 1UL); /* the default 50 µs would be counted as latency */
	homenode_tally_look(w);
	if (w->run->opt.closed)
		serve_closed(w);
	else if (w->id == w->run->opt.threads)
		dispatch(w);
	else
		serve_open(w);
}

static void list_stream(struct homenode_run *run, FILE *f, uint64_t stream)
{
	struct homenode_demand d;
	struct homenode_request r;

	homenode_demand_init(&d, run, stream);
	for (uint64_t i = 0; i < run->opt.list_requests; i++) {
		homenode_demand_next(&d, &r);
		fprintf(f, "{\"stream\":%llu,\"gap_cycles\":%llu,\"units\":%llu,\"line\":%llu}\n",
			(unsigned long long)stream, (unsigned long long)r.gap, (unsigned long long)r.units,
			(unsigned long long)r.line);
	}
}

/* --list-requests N: the demand without a run, one JSON object a line. */
void homenode_server_list(struct homenode_run *run)
{
	FILE *f = homenode_output_open(run->opt.out);

	if (!run->opt.closed)
		list_stream(run, f, 0);
	for (uint64_t i = 0; run->opt.closed && i < run->opt.threads; i++)
		list_stream(run, f, 1 + i);
	homenode_output_commit(f, run->opt.out);
}

const struct homenode_mode homenode_server = {
	.name = "server",
	.has_requests = true,
	.allocate = server_allocate,
	.build = server_build,
	.work = server_work,
	.wake = server_wake,
};
