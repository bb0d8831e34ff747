// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Queueing at memory controllers and links.
 *
 * 1. Up to its capacity a server makes a line wait as M/D/1 does: s ρ / (2 (1 − ρ)).
 * 2. Nothing serves more than its capacity. CPUs request the next line when one has arrived, so
 *    latency slows them down. While the load of a server exceeds MOST of its capacity, its wait
 *    grows by a share of the excess in each round. It shrinks again when the load is lower. The
 *    load is smoothed: the host runs vCPUs in bursts.
 */
#include "model.h"
#include <math.h>

#define OVER 10000   /* µs of model time that loads are averaged over; shorter: they swing with the host's turns */
#define CAP 0.95     /* M/D/1 is used up to here */
#define MOST 0.98    /* share of the capacity that a saturating load gets */
#define GAIN 40.0    /* share of the excess per model-second; much higher: it oscillates */
#define LEAST 200.0  /* cycles that the gain multiplies when there is no wait yet; about a DRAM read */
#define MOST_LINES 1000 /* the longest queue, in lines */

static double capped(double load)
{
	return load < CAP ? load : CAP;
}

/* Cycles that a line waits for a server: number 1 and 2. */
static double wait_for(struct homenode_queue *q, uint64_t lines, unsigned service, uint64_t cycles, unsigned mhz)
{
	double keep = exp(-(double)cycles / (OVER * (double)mhz));

	q->lines = q->lines * keep + (double)(lines - q->seen);
	q->cycles = q->cycles * keep + (double)cycles;
	q->seen = lines;
	double asked = q->lines * service / q->cycles, util = capped(asked);
	double wait = service * util / (2 * (1 - util));
	q->pressure += GAIN * (double)cycles / (1e6 * mhz) * (asked - MOST) * (LEAST + wait + q->pressure);
	if (q->pressure < 0)
		q->pressure = 0;
	if (q->pressure > (double)service * MOST_LINES)
		q->pressure = (double)service * MOST_LINES;
	q->util = util;
	return wait + q->pressure;
}

/* How many of `cycles` a controller was busy; at most all of them. */
static uint64_t busy_cycles(uint64_t lines, unsigned service, uint64_t cycles)
{
	return lines * service < cycles ? lines * service : cycles;
}

/* Lines ever served by each controller and carried by each link: DRAM reads travel to the CPU,
 * write-backs the other way, and lines of other cores from their node. */
static void count_lines(const struct homenode_model *m, uint64_t *mc, uint64_t *link)
{
	const struct homenode_conf *c = &m->conf;

	for (unsigned i = 0; i < c->ncpu; i++) {
		const struct homenode_lab_vcpu *v = &m->shared->vcpu[i];
		int src = c->cpu_node[i];

		for (unsigned n = 0; n < c->nnode; n++) {
			uint64_t read = __atomic_load_n(&v->dram[n], __ATOMIC_RELAXED);
			uint64_t written = __atomic_load_n(&v->writeback[n], __ATOMIC_RELAXED);
			uint64_t peer = __atomic_load_n(&v->transfer[n], __ATOMIC_RELAXED);

			mc[n] += read + written;
			for (unsigned k = 0; k < c->path_len[src][n]; k++)
				link[c->path[src][n][k]] += read + peer;
			for (unsigned k = 0; k < c->path_len[n][src]; k++)
				link[c->path[n][src][k]] += written;
		}
	}
}

static void latencies(struct homenode_model *m, const double *mc_wait, const double *link_wait)
{
	const struct homenode_conf *c = &m->conf;

	for (unsigned src = 0; src < c->nnode; src++)
		for (unsigned dst = 0; dst < c->nnode; dst++) {
			double lat = c->lat[src][dst] + mc_wait[dst];

			for (unsigned k = 0; k < c->path_len[src][dst]; k++)
				lat += link_wait[c->path[src][dst][k]];
			__atomic_store_n(&m->lat_now[src][dst], (unsigned)(lat + 0.5), __ATOMIC_RELAXED);
		}
}

void homenode_model_forget_load(struct homenode_model *m)
{
	const struct homenode_conf *c = &m->conf;
	uint64_t mc[HOMENODE_MAX_NODES] = { 0 }, link[HOMENODE_MAX_LINKS] = { 0 };

	count_lines(m, mc, link);
	for (unsigned n = 0; n < c->nnode; n++)
		m->mc[n] = (struct homenode_queue){ .seen = mc[n] };
	for (unsigned l = 0; l < c->nlink; l++)
		m->link[l] = (struct homenode_queue){ .seen = link[l] };
}

void homenode_model_queues(struct homenode_model *m, uint64_t cycles)
{
	const struct homenode_conf *c = &m->conf;
	struct homenode_lab_shared *s = m->shared;
	uint64_t mc[HOMENODE_MAX_NODES] = { 0 }, link[HOMENODE_MAX_LINKS] = { 0 };
	double mc_wait[HOMENODE_MAX_NODES], link_wait[HOMENODE_MAX_LINKS];

	count_lines(m, mc, link);
	for (unsigned n = 0; n < c->nnode; n++) {
		s->mc_busy_cycles[n] += busy_cycles(mc[n] - m->mc[n].seen, c->mc_cycles, cycles);
		mc_wait[n] = wait_for(&m->mc[n], mc[n], c->mc_cycles, cycles, c->mhz);
		s->mc_lines[n] = mc[n];
		s->mc_util_permille[n] = (uint64_t)(1000 * m->mc[n].util);
	}
	s->mc_ticks += cycles;
	for (unsigned l = 0; l < c->nlink; l++) {
		link_wait[l] = wait_for(&m->link[l], link[l], c->link_cycles, cycles, c->mhz);
		s->link_lines[l] = link[l];
		s->link_util_permille[l] = (uint64_t)(1000 * m->link[l].util);
	}
	latencies(m, mc_wait, link_wait);
}
