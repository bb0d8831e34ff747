/* SPDX-License-Identifier: Apache-2.0 */
/* homenode-load: declarations that its parts share.
 *
 *   options ──► run ──► worker threads ──► tally (per worker, per phase) ──► report
 *                │          │  mode: chase | stream | rao | share | spin | server | hold | handoff | victim
 *              clock      memory
 * It does not judge a placement. It only does work and counts it.
 */
#ifndef HOMENODE_LOAD_H
#define HOMENODE_LOAD_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "clock.h"
#include "hist.h"
#include "perf.h"
#include "rng.h"

#define HOMENODE_LINE   64
#define HOMENODE_PAGE   4096
#define HOMENODE_PHASES 64   /* phases are distinguished modulo this */
#define HOMENODE_CHUNK  4096 /* ops between two looks at the stop word: 0.024 % extra loads */
#define HOMENODE_NONE   UINT64_MAX
#define HOMENODE_MAX_THREADS 1024

/* Prints one sentence (what, where, what to do) and ends the process: 2 = bad input, 1 = failure. */
__attribute__((noreturn, format(printf, 2, 3))) void homenode_fail(int code, const char *format, ...);

enum homenode_thp { HOMENODE_THP_DEFAULT,
		    HOMENODE_THP_ON,
		    HOMENODE_THP_OFF,
};
enum homenode_toucher { HOMENODE_TOUCH_MAIN,
			HOMENODE_TOUCH_WORKER,
};

struct homenode_range {
	double low, high;
};

/* CPUs or nodes, in the order they were listed. */
struct homenode_list {
	uint64_t n; /* 0 = the kernel chooses */
	uint16_t id[HOMENODE_MAX_THREADS];
};

struct homenode_options {
	const char *name, *out, *ready, *count, *perf, *sysfs, *file, *open, *fork_when;
	uint64_t threads, seed;
	uint64_t ws_bytes, extra_bytes, sharing_bytes;
	uint64_t thp, touch;         /* the enums above */
	uint64_t bind_mem, bind_cpu; /* HOMENODE_NONE = not bound */
	struct homenode_list interleave; /* nodes; page i on the i-th, over and over */
	struct homenode_list cpus;   /* worker i on the i-th, over and over; --bind-cpu sets one for all workers */
	uint64_t ops;                /* per thread; open-loop server: requests in all; NONE = no limit */
	double seconds;              /* model-seconds; 0 = no limit */
	uint64_t hold;               /* phase to wait for; NONE = start at once */
	uint64_t warm_laps;          /* NONE = 1 with --ops or --perf, else 0 */
	uint64_t shared, write, triad, pause, vm;
	uint64_t share_every; /* chase steps per atomic add */
	uint64_t barrier;     /* ops between two barriers; 0 = none */
	/* server */
	uint64_t closed, queue, loads_per_unit, alu_per_unit;
	uint64_t unit_cycles; /* nominal cycles of a unit with all-local memory; NONE = derived */
	uint64_t list_requests;
	double rate;        /* requests per model-second */
	double think_us;    /* mean, before the time factor */
	double short_share; /* probability of a short burst */
	double time_factor; /* 0 = the lab's, 1 on a wall clock */
	struct homenode_range short_us, long_us;
	/* touch, control */
	uint64_t node, pages, phase;
	/* victim */
	uint64_t shared_bytes; /* of --file */
	uint64_t loads, file_every, map_every; /* map_every 0 = never */
	/* pagecache */
	uint64_t bytes; /* NONE = to the file's end */
};

/* Counts of one worker in one phase; a pair of cache lines of its own. */
struct homenode_tally {
	_Alignas(128) uint64_t ops;
	uint64_t work;
	uint64_t requests; /* arrivals (open loop) or starts (closed loop) */
	uint64_t dropped;  /* arrivals at a full queue */
	uint64_t start, end; /* cycles; valid when seen */
	uint64_t seen;
};

struct homenode_region {
	uint8_t *base;
	uint64_t bytes, lines;
};

struct homenode_run;

/* One mapping per worker, first touched by that worker, so that it lies where the worker ran. */
struct homenode_worker {
	struct homenode_run *run;
	uint64_t id;
	struct homenode_rng rng;
	struct homenode_region region; /* own, or the shared one */
	void *cursor;                  /* chase: the line to load next */
	uint64_t since_barrier;        /* ops */
	uint64_t position, state;      /* stream: next line; rao: steps since the add; spin: value */
	struct homenode_tally *slot;   /* of the phase seen last */
	uint64_t now;                  /* model clock at that look */
	struct homenode_perf perf;
	_Alignas(128) uint64_t table[128]; /* spin: 1 KiB, stays in L1 */
	struct homenode_tally tally[HOMENODE_PHASES];
	struct homenode_hist latency[HOMENODE_PHASES]; /* server, victim; untouched pages cost nothing */
};

/* A barrier: how often all workers have met, and how many wait now. */
struct homenode_barrier {
	_Alignas(128) uint64_t met;
	_Alignas(128) uint64_t arrived;
};

struct homenode_mode {
	const char *name;
	bool has_requests;
	bool has_latency;    /* without requests */
	bool private_region; /* --file is not for the worker's own region */
	uint64_t batch; /* ops between two looks at phase and clock */
	/* Allocates what all workers share; main thread, before the workers start. NULL = nothing */
	void (*allocate)(struct homenode_run *run);
	/* Fills it, once it was touched; main thread. NULL = nothing */
	void (*build)(struct homenode_run *run);
	/* Fills what is the worker's own; worker thread. NULL = nothing */
	void (*prepare)(struct homenode_worker *w);
	/* Does up to n ops and returns how many; looks at the stop word every HOMENODE_CHUNK. */
	uint64_t (*batch_run)(struct homenode_worker *w, uint64_t n);
	/* Ops of one lap over the worker's region. */
	uint64_t (*lap)(const struct homenode_worker *w);
	/* Replaces the batch loop (server). */
	void (*work)(struct homenode_worker *w);
	/* Wakes workers that wait for work. */
	void (*wake)(struct homenode_run *run);
	/* Writes what only this mode has, each key after a comma. NULL = nothing */
	void (*report)(FILE *f, const struct homenode_run *run);
};

extern const struct homenode_mode homenode_chase, homenode_stream, homenode_rao, homenode_share, homenode_spin, homenode_server,
	homenode_hold, homenode_handoff, homenode_victim;

struct homenode_run {
	struct homenode_options opt;
	struct homenode_clock clock;
	const struct homenode_mode *mode;
	struct homenode_perf_plan plan;
	struct homenode_region shared; /* base NULL: each worker has its own */
	struct homenode_region sharing; /* rao, share: the contended lines */
	struct homenode_barrier *barrier; /* NULL without --barrier */
	uint64_t nthreads;             /* workers + the dispatcher of an open-loop server */
	struct homenode_worker **worker;
	double time_factor;
	const char *stopped_by; /* ops, seconds, signal */
	pthread_barrier_t touched, built, warm;
	uint64_t finished; /* atomic */
};

/* Set once, by a signal, by the time limit or by the end of a run. */
struct homenode_stop_word {
	_Alignas(128) volatile uint64_t set;
};
extern struct homenode_stop_word homenode_stop;

/* options.c */
const struct homenode_mode *homenode_options_parse(struct homenode_options *o, int argc, char **argv);

/* memory.c */
void *homenode_map(const struct homenode_options *o, uint64_t bytes, enum homenode_thp thp);
/* Maps --file if it was given; each region is another part of it. */
struct homenode_region homenode_region_map(const struct homenode_options *o, uint64_t bytes);
struct homenode_region homenode_region_anonymous(const struct homenode_options *o, uint64_t bytes);
void homenode_touch_slice(const struct homenode_region *r, uint64_t part, uint64_t parts);
void homenode_build_cycle(const struct homenode_region *r, uint64_t seed, uint64_t stream);
void homenode_pin(uint64_t cpu);

/* tally.c */
void homenode_tally_look(struct homenode_worker *w);
void homenode_tally_credit(struct homenode_worker *w, uint64_t ops, uint64_t work);
struct homenode_hist *homenode_tally_latency(struct homenode_worker *w);

/* barrier.c */
void homenode_barrier_allocate(struct homenode_run *run);
/* The mode's batch_run, and the barriers in it. */
uint64_t homenode_barrier_batch(struct homenode_worker *w, uint64_t n);

/* run.c */
void homenode_run_all(struct homenode_run *run);

/* report.c */
FILE *homenode_output_open(const char *path);
void homenode_output_commit(FILE *f, const char *path);
void homenode_report_write(const struct homenode_run *run);
void homenode_json_array(FILE *f, const char *key, const volatile homenode_u64 *v, uint64_t n);

/* server.c */
void homenode_server_list(struct homenode_run *run);

/* control.c, touch.c, pagecache.c, peer.c, pages.c: the subcommands that are no load */
int homenode_control_main(int argc, char **argv);
int homenode_status_main(int argc, char **argv);
int homenode_touch_main(int argc, char **argv);
int homenode_pagecache_main(int argc, char **argv);
int homenode_peer_main(int argc, char **argv);
int homenode_patch_main(int argc, char **argv);
int homenode_drop_main(int argc, char **argv);
int homenode_pages_main(int argc, char **argv);

/*
 * n dependent loads: exactly one data load per op, everything else in
 * registers.  Unrolled by 16, so that the loop costs 2 instructions in 18.
 */
static inline __attribute__((always_inline)) void *homenode_chase_steps(void *p, uint64_t n)
{
	uint64_t rounds = n / 16, rest = n % 16;

	if (rounds)
		__asm__ volatile("1:\n\t"
				 ".rept 16\n\t"
				 "movq (%0), %0\n\t"
				 ".endr\n\t"
				 "decq %1\n\t"
				 "jnz 1b"
				 : "+r"(p), "+r"(rounds)
				 :
				 : "cc", "memory");
	if (rest)
		__asm__ volatile("1:\n\t"
				 "movq (%0), %0\n\t"
				 "decq %1\n\t"
				 "jnz 1b"
				 : "+r"(p), "+r"(rest)
				 :
				 : "cc", "memory");
	return p;
}

static inline uint64_t homenode_min(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

#endif
