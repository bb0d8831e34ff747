/* SPDX-License-Identifier: GPL-2.0-or-later OR Apache-2.0 */
/*
 * The contract of the lab: one shared file that the QEMU plugin (host), the
 * PMU module (guest kernel), the load programs (guest) and homenode (Go, both
 * sides) see at once.  The host maps the file; the guest maps BAR 2 of the
 * ivshmem device 1af4:1110.
 *
 * Every word is a naturally aligned little-endian u64, written by one side
 * only, and read with plain 64-bit loads (x86 keeps them whole and in order).
 * `schema/lab_layout.golden` repeats the offsets; a Go test and a C program
 * both reproduce it.
 *
 * Words of time: a *model cycle* is one cycle of a modelled core; a
 * *model-second* is mhz * 10^6 model cycles of the shared model clock.
 */
#ifndef HOMENODE_LAB_H
#define HOMENODE_LAB_H

#ifdef __KERNEL__
#include <linux/types.h>
typedef u64 homenode_u64;
#else
#include <stdint.h>
typedef uint64_t homenode_u64;
#endif

#define HOMENODE_LAB_MAGIC   0x42414c45444e4f48ULL /* "HONDELAB", little-endian */
#define HOMENODE_LAB_VERSION 1
#define HOMENODE_LAB_BYTES   (1u << 20)

#define HOMENODE_MAX_CPUS  64
#define HOMENODE_MAX_NODES 16
#define HOMENODE_MAX_LINKS 64

/* control.state, as asked for and as applied. COUNT: nobody is held back */
enum {
	HOMENODE_OFF = 0,   /* nothing is counted; the guest runs at full speed */
	HOMENODE_COUNT = 1, /* counted, not paced: calibration, exact counts */
	HOMENODE_PACE = 2,  /* counted and paced: the only state to measure in */
	HOMENODE_WARM = 3,  /* PACE, but CPUs kept for daemons are not held back */
};

/* Where a count was made. */
enum { HOMENODE_USER = 0, HOMENODE_KERNEL = 1 };

/* Counters of one vCPU and mode. Append only: the indices are the contract. */
enum {
	HOMENODE_CYCLES = 0,      /* busy (unhalted) model cycles, stalls included */
	HOMENODE_INSTRUCTIONS,    /* retired guest instructions */
	HOMENODE_LOADS,           /* data reads, one per executed access */
	HOMENODE_STORES,          /* data writes */
	HOMENODE_L1_MISSES,
	HOMENODE_L2_MISSES,       /* requests that leave the private caches (uncore) */
	HOMENODE_LLC_MISSES,      /* requests that go to DRAM, loads and stores */
	HOMENODE_LOCAL_LOADS,     /* DRAM reads homed on the vCPU's own node */
	HOMENODE_REMOTE_LOADS,    /* DRAM reads homed on another node */
	HOMENODE_LOCAL_STORES,    /* DRAM ownership reads for writes, own node */
	HOMENODE_REMOTE_STORES,   /* the same, another node */
	HOMENODE_STALL_CYCLES,    /* cycles waiting for L2, LLC or DRAM */
	HOMENODE_UNMAPPED,        /* cached accesses outside every node's memory */
	HOMENODE_NCOUNTERS = 16,
};

struct homenode_lab_vcpu {                       /* 1024 bytes */
	homenode_u64 counter[2][HOMENODE_NCOUNTERS]; /* [user|kernel][index] */
	homenode_u64 dram[HOMENODE_MAX_NODES];       /* LLC misses by home node, all modes */
	homenode_u64 clock;                          /* this vCPU's model clock, cycles */
	homenode_u64 running;                        /* 0 while halted */
	homenode_u64 waits;                          /* times it waited for the model clock */
	homenode_u64 reserved[77];
};

struct homenode_lab_shared {
	/* page 0: written once by the plugin, before the guest starts */
	homenode_u64 magic;
	homenode_u64 version;
	homenode_u64 ncpu;
	homenode_u64 nnode;
	homenode_u64 nlink;
	homenode_u64 mhz;            /* model cycles per model-microsecond */
	homenode_u64 time_factor;    /* all periods and bursts are scaled by this */
	homenode_u64 reserved0[57];
	/* 512: control, written by the guest */
	homenode_u64 state;          /* asked for: OFF, COUNT, PACE, WARM */
	homenode_u64 phase;          /* load programs credit their operations to it */
	homenode_u64 switch_to;      /* guest address of __switch_to_asm; 0 = unknown */
	homenode_u64 reserved1[61];
	/* 1024: status, written by the plugin */
	homenode_u64 applied;        /* the state in force */
	homenode_u64 model_cycles;   /* the shared model clock; monotone */
	homenode_u64 paced_cycles;   /* model cycles that passed in PACE */
	homenode_u64 paced_wall_ns;  /* host nanoseconds that passed in PACE */
	homenode_u64 slowest_permille; /* lowest rate of any 250 ms window of this PACE stretch, against nominal */
	homenode_u64 heartbeat;      /* counts the controller's rounds */
	homenode_u64 reserved2[122];
	/* 2048: per node and link, written by the plugin each round */
	homenode_u64 mc_util_permille[HOMENODE_MAX_NODES];
	homenode_u64 link_util_permille[HOMENODE_MAX_LINKS];
	homenode_u64 mc_lines[HOMENODE_MAX_NODES];   /* cache lines served, total */
	homenode_u64 link_lines[HOMENODE_MAX_LINKS]; /* cache lines carried, total */
	homenode_u64 reserved3[96];
	/* 4096: per vCPU */
	struct homenode_lab_vcpu vcpu[HOMENODE_MAX_CPUS];
};

#ifdef __KERNEL__
#define homenode_static_assert(c) static_assert(c)
#else
#define homenode_static_assert(c) _Static_assert(c, #c)
#endif
homenode_static_assert(sizeof(struct homenode_lab_vcpu) == 1024);
homenode_static_assert(__builtin_offsetof(struct homenode_lab_shared, state) == 512);
homenode_static_assert(__builtin_offsetof(struct homenode_lab_shared, applied) == 1024);
homenode_static_assert(__builtin_offsetof(struct homenode_lab_shared, mc_util_permille) == 2048);
homenode_static_assert(__builtin_offsetof(struct homenode_lab_shared, vcpu) == 4096);
homenode_static_assert(sizeof(struct homenode_lab_shared) <= HOMENODE_LAB_BYTES);

/*
 * Raw event codes of the lab's PMU (perf_event_attr.config, umask << 8 | event).
 * Where Intel has an event of the same meaning, its code is used.
 */
#define HOMENODE_EV_INSTRUCTIONS   0x00c0
#define HOMENODE_EV_CYCLES         0x003c
#define HOMENODE_EV_LOADS          0x81d0 /* MEM_INST_RETIRED.ALL_LOADS */
#define HOMENODE_EV_STORES         0x82d0 /* MEM_INST_RETIRED.ALL_STORES */
#define HOMENODE_EV_L1_MISSES      0x08d1
#define HOMENODE_EV_L2_MISSES      0x10d1
#define HOMENODE_EV_LLC_MISSES     0x412e /* LONGEST_LAT_CACHE.MISS */
#define HOMENODE_EV_LOCAL_LOADS    0x01d3 /* MEM_LOAD_L3_MISS_RETIRED.LOCAL_DRAM */
#define HOMENODE_EV_REMOTE_LOADS   0x02d3 /* MEM_LOAD_L3_MISS_RETIRED.REMOTE_DRAM */
#define HOMENODE_EV_LOCAL_STORES   0x10d3 /* the lab's own */
#define HOMENODE_EV_REMOTE_STORES  0x20d3 /* the lab's own */
#define HOMENODE_EV_STALL_CYCLES   0x14a3 /* CYCLE_ACTIVITY.STALLS_MEM_ANY, cmask ignored */
#define HOMENODE_EV_DRAM_NODE(n)   (0xf0 | (homenode_u64)(n) << 8) /* LLC misses by home node, all modes */

#endif
