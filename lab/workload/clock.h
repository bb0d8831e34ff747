/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The clock that times every load program. In the lab it is the shared model clock (ivshmem BAR
 * 2). Elsewhere it is CLOCK_MONOTONIC as the clock of a 1000 MHz core, so that one "cycle" is 1
 * ns.
 */
#ifndef HOMENODE_CLOCK_H
#define HOMENODE_CLOCK_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "homenode_lab.h"

#define HOMENODE_WALL_MHZ 1000 /* 1 cycle = 1 ns */
#define HOMENODE_NAP_US   50000 /* longest sleep in one go: bounds the reaction to a stop */

struct homenode_clock {
	volatile struct homenode_lab_shared *lab; /* NULL: wall clock */
	uint64_t mhz;        /* cycles per (model) microsecond */
	uint64_t wall_phase;                      /* the phase without a lab: 1, for ever */
};

/* Opens the lab under `sysfs` (usually /sys), else the wall clock; a broken lab is fatal. */
void homenode_clock_open(struct homenode_clock *c, const char *sysfs, bool writable);

/*
 * Sleeps once towards `deadline` (cycles), at least `least_us` and at most
 * HOMENODE_NAP_US; returns at once when it has passed.
 */
void homenode_clock_nap(const struct homenode_clock *c, uint64_t deadline, uint64_t least_us);

void homenode_sleep_us(uint64_t us);

static inline const char *homenode_clock_name(const struct homenode_clock *c)
{
	return c->lab ? "model" : "wall";
}

static inline uint64_t homenode_clock_now(const struct homenode_clock *c)
{
	struct timespec t;

	if (c->lab)
		return c->lab->model_cycles;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return ((uint64_t)t.tv_sec * 1000000000ULL + (uint64_t)t.tv_nsec) * HOMENODE_WALL_MHZ / 1000;
}

/* True if cycles are known: the model's or the wall clock's. */
static inline bool homenode_clock_counts(const struct homenode_clock *c)
{
	return !c->lab || c->lab->applied == HOMENODE_ON;
}

/* That CPU's own clock: it ticks with each block of its instructions. For threads that stay on
 * the CPU. */
static inline uint64_t homenode_clock_cpu(const struct homenode_clock *c, uint64_t cpu)
{
	return c->lab && cpu < HOMENODE_MAX_CPUS ? c->lab->vcpu[cpu].clock : homenode_clock_now(c);
}

static inline uint64_t homenode_clock_phase(const struct homenode_clock *c)
{
	return c->lab ? c->lab->phase : c->wall_phase;
}

#endif
