/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The modelled memory system: a private L1 per vCPU and L2 per core, one LLC per
 * node, DRAM behind one controller per node, directed links between nodes, and a
 * directory of all lines that keeps the private caches coherent (MESI).
 *
 *	vCPU ─ L1 ┬ L2 ─ directory ─┬─ LLC(node) ─ controller(node) ─ DRAM     local
 *	vCPU ─ L1 ┘  (core)         ├─ link … link ─ controller ─ DRAM         remote
 *	                            └─ (link … link) ─ another core's L2       modified there
 *
 * Not modelled: instruction fetch, page walks, prefetching beyond sequential runs.
 */
#ifndef HOMENODE_MODEL_H
#define HOMENODE_MODEL_H

#include "../include/homenode_lab.h"
#include "cache.h"
#include <stdio.h>

#define HOMENODE_L2_WAYS  4
#define HOMENODE_LLC_WAYS 16
#define HOMENODE_STREAMS  8
#define HOMENODE_L1_MAX   4096 /* lines */
#define HOMENODE_THREADS  2    /* of a core, at most */

/* A slot of L1 holds its virtual line + 1 and what a fast hit may do. */
#define HOMENODE_L1_WRITE (1ULL << 63) /* the core has it alone, and L2 knows it as modified */
#define HOMENODE_L1_ASK   (1ULL << 62) /* contended: every access asks the directory */
#define HOMENODE_L1_LINE  (HOMENODE_L1_ASK - 1)

/* What a shape says, in the units of the configuration file. */
struct homenode_conf {
	unsigned mhz, time_factor, off_instructions;
	bool guest_addresses; /* QEMU reports guest addresses, not sums of offsets */
	uint64_t l1_bytes, l2_bytes, llc_bytes;
	unsigned l2_cycles, llc_cycles, stream_parallelism;
	unsigned mc_cycles, link_cycles; /* service time of one line */
	unsigned atomic_cycles, coherence;
	unsigned ncpu, nnode, nlink;
	uint64_t node_bytes[HOMENODE_MAX_NODES];
	int cpu_node[HOMENODE_MAX_CPUS];
	unsigned cpu_core[HOMENODE_MAX_CPUS];
	unsigned cpu_fast[HOMENODE_MAX_CPUS]; /* 0: as fast as the others */
	unsigned lat[HOMENODE_MAX_NODES][HOMENODE_MAX_NODES];
	unsigned transfer[HOMENODE_MAX_NODES][HOMENODE_MAX_NODES];
	unsigned char path_len[HOMENODE_MAX_NODES][HOMENODE_MAX_NODES];
	unsigned char path[HOMENODE_MAX_NODES][HOMENODE_MAX_NODES][HOMENODE_MAX_NODES];
};

struct homenode_core {
	struct homenode_cache l2;
	unsigned cpu[HOMENODE_THREADS], ncpu;
	int node;
	unsigned lock; /* homenode_core_lock */
} __attribute__((aligned(128)));

struct homenode_vcpu {
	uint64_t *ctr;            /* counters of the mode it runs in */
	uint64_t clock;           /* model cycles */
	unsigned fast, fast_rest; /* own cycles per cycle of the shared clock; the rest of a cycle */
	unsigned off_rest;        /* while OFF: instructions short of a whole cycle */
	bool started;             /* its thread has begun */
	bool unchecked;           /* code.h: it translated a block, which was not compared yet */
	bool unsettled;           /* likewise: blocks are to be compared again */
	unsigned turn;            /* futex word: it may go on, or has to check */
	unsigned waiting, kicked; /* at the horizon; QEMU wants it out of its block */
	struct homenode_lab_vcpu *pub;
	int node;
	unsigned core_id;
	struct homenode_core *core;
	uint64_t access;          /* outcome of the last access beyond the fast path: HOMENODE_ACCESS() */
	struct homenode_lab_sample *ring;
	/* ordering with the other vCPUs (clock.c) */
	uint64_t shares_until;    /* own clock until which it counts as sharing lines */
	uint64_t others_reached;  /* a clock that all others have reached */
	uint64_t request_at;      /* clock at which its class may request the next line (qos.c) */
	/* SMT (smt.c); sibling NULL: none */
	struct homenode_vcpu *sibling;
	unsigned issue_cost;      /* cycles an instruction, × 256 */
	unsigned issue_rest;
	uint64_t issued, issued_since;
	unsigned issue_rate;      /* instructions a cycle, × 65536; the sibling reads it */
	uint64_t random;
	uint64_t stream[HOMENODE_STREAMS];
	unsigned char stream_run[HOMENODE_STREAMS];
	unsigned stream_next;
	uint64_t l1[HOMENODE_L1_MAX]; /* virtually tagged, see HOMENODE_L1_… */
} __attribute__((aligned(128)));

/* A line's entry in the directory. */
struct homenode_line {
	uint64_t sharers; /* cores that may have it; a clean copy may have been dropped unreported */
	uint64_t word;    /* HOMENODE_DIR_…, nodes whose LLC may have it, clock of the last transfer */
};

/* How busy a controller or a link is: lines requested in the cycles before, with weights that
 * fall with age. */
struct homenode_queue {
	double lines, cycles;
	double util;     /* at most its capacity */
	double pressure; /* cycles that slow a load beyond its capacity */
	uint64_t seen;   /* lines at the previous update */
};

struct homenode_model {
	struct homenode_conf conf;
	struct homenode_lab_shared *shared;
	uint64_t l1_mask;
	struct {
		uint64_t base, end;
	} range[HOMENODE_MAX_NODES]; /* plugin "physical" addresses of a node */
	struct homenode_line *directory[HOMENODE_MAX_NODES];
	struct homenode_cache llc[HOMENODE_MAX_NODES];
	struct homenode_core core[HOMENODE_MAX_CPUS];
	/* idle latency plus queueing, rewritten at each update of the queues (clock.c) */
	unsigned lat_now[HOMENODE_MAX_NODES][HOMENODE_MAX_NODES];
	struct homenode_queue mc[HOMENODE_MAX_NODES], link[HOMENODE_MAX_LINKS];
	bool qos; /* classes are counted and limited (qos.c) */
	bool smt; /* at least one core has two vCPUs */
	struct homenode_vcpu vcpu[HOMENODE_MAX_CPUS];
};

extern struct homenode_model homenode_model;

/* Advances a vCPU's clock by n of its cycles. Daemons have periods in seconds, in which CPUs of
 * 50 MHz get next to nothing done. So the CPU that a shape reserves for them is faster by the
 * time factor, and so is their work on it. */
static inline void homenode_pass(struct homenode_vcpu *v, uint64_t n)
{
	if (__builtin_expect(v->fast > 1, 0)) {
		n += v->fast_rest;
		v->fast_rest = (unsigned)(n % v->fast);
		n /= v->fast;
	}
	v->clock += n;
}

int homenode_conf_read(FILE *f, struct homenode_conf *c, char *err, size_t len);
int homenode_model_init(struct homenode_model *m, struct homenode_lab_shared *s);
/* While OFF: what the guest does then goes past the caches. What they had before is not what they
 * would have now, and a run would depend on the one before it. */
void homenode_model_empty_caches(struct homenode_model *m);

enum homenode_how { HOMENODE_LOAD,
		    HOMENODE_STORE,
		    HOMENODE_ATOMIC,
};

/* An access of vcpu that its L1 could not serve alone: virtual line, plugin physical address. */
void homenode_model_access(struct homenode_model *m, struct homenode_vcpu *v,
			   uint64_t vline, uint64_t phys, enum homenode_how how);

/* The node that an address belongs to; -1 = none. */
static inline int homenode_home(const struct homenode_model *m, uint64_t phys)
{
	for (unsigned n = 0; n < m->conf.nnode; n++)
		if (phys >= m->range[n].base && phys < m->range[n].end)
			return (int)n;
	return -1;
}

/* directory.c: what an access needs from other cores' copies. */
enum homenode_claim_kind {
	HOMENODE_OWN,     /* nothing: its core has the line and may access it */
	HOMENODE_FETCH,   /* from LLC or DRAM */
	HOMENODE_PEER,    /* from the core that modified it */
	HOMENODE_UPGRADE, /* its core has it; others lose it */
};
struct homenode_claim {
	struct homenode_line *entry; /* locked; NULL: no directory */
	uint64_t word;               /* what it will be unlocked with */
	enum homenode_claim_kind kind;
	unsigned latency; /* PEER, UPGRADE: of the transfer; FETCH: of removing copies meanwhile */
	unsigned wait;    /* for transfers of the same line before this one */
	unsigned from;    /* a core that had it; for PEER the one that modified it */
	bool contended;
};
int homenode_directory_init(struct homenode_model *m);
/* The entry stays locked until homenode_directory_done: the caller puts the line into
 * its core's caches, or marks it there, meanwhile. */
struct homenode_claim homenode_directory_claim(struct homenode_model *m, struct homenode_vcpu *v,
					       uint64_t phys, int home, bool write);
void homenode_directory_done(struct homenode_claim *c);
/* A modified line left the core's caches for the LLC. False: another core took it before, or a
 * sibling has it there again. */
bool homenode_directory_leave(struct homenode_model *m, struct homenode_vcpu *v, uint64_t line);
/* A core's L2 has all that its L1s have: they change together, under the core's lock. The thread
 * that holds the lock takes no other core's. */
void homenode_core_lock(struct homenode_core *core);
void homenode_core_unlock(struct homenode_core *core);
/* Removes a virtual line from the L1s of a core's CPUs. The core is locked. */
void homenode_l1_drop(struct homenode_model *m, const struct homenode_core *core, uint64_t vline);

#define HOMENODE_RARE __attribute__((cold)) /* out of the way of what is always done */

/* qos.c: counts and limits by class of service, while the guest has them on. */
static inline bool homenode_qos(const struct homenode_model *m)
{
	return __builtin_expect(__atomic_load_n(&m->qos, __ATOMIC_RELAXED), 0);
}
/* Turns it on or off, as the guest asks. One thread at a time. */
void homenode_qos_enter(struct homenode_model *m);
/* homenode_cache_put into the LLC of the vCPU's node, for its class and RMID. */
HOMENODE_RARE struct homenode_victim homenode_qos_put(struct homenode_model *m, struct homenode_vcpu *v, uint64_t line,
						      uint64_t dirty);
/* A line of the LLC was removed. */
HOMENODE_RARE void homenode_qos_drop(struct homenode_model *m, unsigned node, uint64_t at);
/* A line between memory and the LLC of cpu's node. */
HOMENODE_RARE void homenode_qos_line(struct homenode_model *m, unsigned cpu, int home, unsigned rmid);
/* Cycles that a request of the vCPU waits, for its class. */
HOMENODE_RARE unsigned homenode_qos_wait(struct homenode_model *m, struct homenode_vcpu *v);

/* smt.c: cycles that n instructions take, where a sibling takes issue slots. */
uint64_t homenode_smt_issue(struct homenode_vcpu *v, uint64_t n);

/* Hand an access (HOMENODE_ACCESS() and the STORE bit) to the vCPU's samplers.
 * Called while pub->sampling is not 0. */
void homenode_sample(struct homenode_vcpu *v, uint64_t ip, uint64_t addr, uint64_t access);

/* queue.c: recompute queueing from the lines served since the last call, in `cycles`
 * of the model clock. OFF, nothing is counted: no queueing. */
void homenode_model_queues(struct homenode_model *m, uint64_t cycles);
/* Forgets the load so far. */
void homenode_model_forget_load(struct homenode_model *m);

static inline void homenode_model_flush_l1(struct homenode_model *m,
					   struct homenode_vcpu *v)
{
	for (uint64_t i = 0; i <= m->l1_mask; i++)
		v->l1[i] = 0;
}

#endif
