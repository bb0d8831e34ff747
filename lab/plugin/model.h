/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The modelled memory system: private L1 and L2 per vCPU, one LLC per node,
 * DRAM behind one controller per node, directed links between nodes.
 *
 *	vCPU ─ L1 ─ L2 ─ LLC(node) ─┬─ controller(node) ─ DRAM      local
 *	                            └─ link … link ─ controller ─ DRAM  remote
 *
 * Not modelled: coherence, instruction fetch, page walks, write-backs, SMT.
 */
#ifndef HOMENODE_MODEL_H
#define HOMENODE_MODEL_H

#include "../include/homenode_lab.h"
#include <stdbool.h>
#include <stdio.h>

#define HOMENODE_LINE_SHIFT 6
#define HOMENODE_L2_WAYS    4
#define HOMENODE_LLC_WAYS   16
#define HOMENODE_STREAMS    4
#define HOMENODE_L1_MAX     4096 /* lines */

/* What a shape says, in the units of the configuration file. */
struct homenode_conf {
	unsigned mhz, time_factor;
	uint64_t l1_bytes, l2_bytes, llc_bytes;
	unsigned l2_cycles, llc_cycles, stream_parallelism;
	unsigned mc_cycles, link_cycles; /* service time of one line */
	unsigned atomic_cycles, coherence;
	unsigned ncpu, nnode, nlink;
	uint64_t node_bytes[HOMENODE_MAX_NODES];
	int cpu_node[HOMENODE_MAX_CPUS];
	unsigned cpu_core[HOMENODE_MAX_CPUS];
	bool housekeeping[HOMENODE_MAX_CPUS];
	unsigned lat[HOMENODE_MAX_NODES][HOMENODE_MAX_NODES];
	unsigned transfer[HOMENODE_MAX_NODES][HOMENODE_MAX_NODES];
	unsigned char path_len[HOMENODE_MAX_NODES][HOMENODE_MAX_NODES];
	unsigned char path[HOMENODE_MAX_NODES][HOMENODE_MAX_NODES][HOMENODE_MAX_NODES];
};

/* A set-associative cache of line tags, replaced first in, first out.  Several
 * vCPUs of a node share an LLC without a lock: a race costs one wrong hit or
 * miss, and both are rare against the 0.1 % that the counts are held to. */
struct homenode_cache {
	uint64_t *tags;       /* [sets][ways], line number + 1, 0 = empty */
	unsigned char *next;  /* [sets], way to replace next */
	uint64_t set_mask;
	unsigned ways;
};

struct homenode_vcpu {
	uint64_t *ctr;            /* counters of the mode it runs in */
	uint64_t clock;           /* model cycles */
	uint64_t epoch;           /* of the last synchronisation with the shared clock */
	bool daemons;             /* kept for daemons: free in WARM */
	struct homenode_lab_vcpu *pub;
	int node;
	uint64_t access;          /* what became of the last L1 miss: HOMENODE_ACCESS() */
	struct homenode_lab_sample *ring;
	struct homenode_cache l2;
	uint64_t stream[HOMENODE_STREAMS];
	unsigned char stream_run[HOMENODE_STREAMS];
	unsigned stream_next;
	uint64_t l1[HOMENODE_L1_MAX]; /* virtually tagged, line number + 1 */
} __attribute__((aligned(128)));

struct homenode_model {
	struct homenode_conf conf;
	struct homenode_lab_shared *shared;
	uint64_t l1_mask;
	struct {
		uint64_t base, end;
	} range[HOMENODE_MAX_NODES]; /* plugin "physical" addresses of a node */
	struct homenode_cache llc[HOMENODE_MAX_NODES];
	/* idle latency plus queueing, rewritten by the controller each round */
	unsigned lat_now[HOMENODE_MAX_NODES][HOMENODE_MAX_NODES];
	double mc_util[HOMENODE_MAX_NODES], link_util[HOMENODE_MAX_LINKS];
	uint64_t mc_seen[HOMENODE_MAX_NODES], link_seen[HOMENODE_MAX_LINKS];
	struct homenode_vcpu vcpu[HOMENODE_MAX_CPUS];
};

extern struct homenode_model homenode_model;

int homenode_conf_read(FILE *f, struct homenode_conf *c, char *err, size_t len);
int homenode_model_init(struct homenode_model *m, struct homenode_lab_shared *s);

/* One access of vcpu that missed L1: virtual line, plugin physical address. */
void homenode_model_miss(struct homenode_model *m, struct homenode_vcpu *v,
			 uint64_t line, uint64_t phys, bool store);

/* Hand an access (HOMENODE_ACCESS() and the STORE bit) to the vCPU's samplers.
 * Called while pub->sampling is not 0. */
void homenode_sample(struct homenode_vcpu *v, uint64_t ip, uint64_t addr, uint64_t access);

/* Recompute queueing from the lines served since the last call, in `cycles` of
 * the model clock. Not paced, the clock says nothing about the load: no queueing. */
void homenode_model_queues(struct homenode_model *m, uint64_t cycles, bool paced);

static inline void homenode_model_flush_l1(struct homenode_model *m,
					   struct homenode_vcpu *v)
{
	for (uint64_t i = 0; i <= m->l1_mask; i++)
		v->l1[i] = 0;
}

#endif
