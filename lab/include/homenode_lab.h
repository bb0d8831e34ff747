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
 * *model-second* is mhz * 10^6 model cycles of the shared model clock, and a
 * second of the guest's clock.
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
#define HOMENODE_LAB_VERSION 4
#define HOMENODE_LAB_BYTES   (1u << 20)

#define HOMENODE_MAX_CPUS  64
#define HOMENODE_MAX_NODES 16
#define HOMENODE_MAX_LINKS 64

/* control.state, as asked for and as applied */
enum {
	HOMENODE_OFF = 0, /* nothing is modelled or counted: for booting and preparing */
	HOMENODE_ON = 1,
};

/* The mode in which an access was counted. */
enum { HOMENODE_USER = 0,
       HOMENODE_KERNEL = 1,
};

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
	/* The uncore penalty's terms (Rao et al., HPCA 2013): A, O and W. A request is
	 * a read, or a claim of ownership for a write, that leaves the private caches:
	 * an L2 miss or an upgrade. Critical: the core waits for it. */
	HOMENODE_UNCORE_REQUESTS, /* A */
	HOMENODE_UNCORE_OUTSTANDING, /* O: sum of the latencies of all requests, cycles */
	HOMENODE_UNCORE_CRITICAL, /* W: cycles with at least one outstanding that is critical */
	/* Coherence. Loads and stores alike. */
	HOMENODE_TRANSFERS_LOCAL, /* lines modified by another CPU of the node, from its cache */
	HOMENODE_TRANSFERS_REMOTE, /* the same, a CPU of another node */
	HOMENODE_UPGRADES,        /* writes to a line that was held shared: ownership, no data */
	HOMENODE_INVALIDATIONS,   /* copies of other CPUs that this CPU's writes invalidated */
	HOMENODE_ATOMICS,         /* locked read-modify-writes (counted as stores, too) */
	HOMENODE_WRITEBACKS,      /* modified lines that its accesses evicted to DRAM */
	HOMENODE_NCOUNTERS = 32,
};

/*
 * Access sampling, as hardware's load-latency and store sampling: each vCPU has
 * a few samplers, and each of those counts the accesses that pass its filter and
 * records every period-th.  Both sides run on the vCPU's own thread (the plugin during the access
 * itself), so nothing here needs a lock or a barrier. Only `left` is written by both.
 */
#define HOMENODE_SAMPLERS 4   /* of a vCPU; hardware has one to eight */
#define HOMENODE_SAMPLES  256 /* ring of a vCPU; the guest empties it every 2 ms */

struct homenode_lab_sampler {    /* 64 bytes */
	homenode_u64 period;     /* guest: qualifying accesses to a sample; 0 = count only */
	homenode_u64 left;       /* both: qualifying accesses to the next sample */
	homenode_u64 filter;     /* guest: HOMENODE_FILTER_…, least latency of loads in bits 0-31 */
	homenode_u64 count;      /* plugin: qualifying accesses, ever */
	homenode_u64 lost;       /* plugin: samples that found the ring full, ever */
	homenode_u64 reserved[3];
};

#define HOMENODE_FILTER_LOADS  (1ULL << 32)
#define HOMENODE_FILTER_STORES (1ULL << 33)
#define HOMENODE_FILTER_USER   (1ULL << 34)
#define HOMENODE_FILTER_KERNEL (1ULL << 35)

struct homenode_lab_sample {     /* 32 bytes */
	homenode_u64 ip;         /* virtual address of the instruction; 0 = no instruction did it */
	homenode_u64 addr;       /* virtual address of the data */
	homenode_u64 clock;      /* the vCPU's model clock */
	homenode_u64 access;     /* outcome, below */
};

/* sample.access: latency in cycles (bits 0-31), where it hit (32-35), home node
 * (36-43, 0xff = unknown), store, kernel, and which sampler (48-51).
 * The latency is the access's own: misses that overlap stall for less. */
enum {
	HOMENODE_HIT_UNKNOWN = 0, /* a device, or memory of no node */
	HOMENODE_HIT_L1,
	HOMENODE_HIT_L2,
	HOMENODE_HIT_LLC,
	HOMENODE_HIT_LOCAL,       /* DRAM of the vCPU's node */
	HOMENODE_HIT_REMOTE,      /* DRAM of another */
	HOMENODE_HIT_PEER_LOCAL,  /* modified in the private cache of another CPU of the node */
	HOMENODE_HIT_PEER_REMOTE, /* the same, a CPU of another node */
	HOMENODE_HIT_UPGRADE,     /* a write: in its own cache, but shared with others */
};
#define HOMENODE_ACCESS(hit, home, latency) \
	((homenode_u64)(latency) | (homenode_u64)(hit) << 32 | (homenode_u64)(home) << 36)
#define HOMENODE_ACCESS_LATENCY(a) ((a) & 0xffffffffULL)
#define HOMENODE_ACCESS_HIT(a)     ((a) >> 32 & 0xf)
#define HOMENODE_ACCESS_HOME(a)    ((a) >> 36 & 0xff)
#define HOMENODE_ACCESS_STORE      (1ULL << 44)
#define HOMENODE_ACCESS_KERNEL     (1ULL << 45)
#define HOMENODE_ACCESS_SAMPLER(a) ((a) >> 48 & 0xf)

/* Latency of an L1 hit, as samples report it (Skylake's); the model charges none. */
#define HOMENODE_L1_LATENCY 4

/*
 * Monitoring and limits by class of service, as RDT has them. While `qos` is on, each line that
 * the LLC takes belongs to the RMID that its vCPU has then, and each class (CLOSID) has its limits.
 */
#define HOMENODE_MAX_RMIDS   64
#define HOMENODE_MAX_CLOSIDS 16
#define HOMENODE_PQR(closid, rmid) ((homenode_u64)(closid) << 32 | (rmid)) /* as IA32_PQR_ASSOC */
#define HOMENODE_PQR_RMID(pqr)   ((pqr) & (HOMENODE_MAX_RMIDS - 1))
#define HOMENODE_PQR_CLOSID(pqr) ((pqr) >> 32 & (HOMENODE_MAX_CLOSIDS - 1))

struct homenode_lab_traffic { /* lines between the LLC of the vCPU's node and memory */
	homenode_u64 total;   /* read, and written back */
	homenode_u64 local;   /* of these, memory of the vCPU's node */
};

struct homenode_lab_vcpu {                       /* 2048 bytes */
	homenode_u64 counter[2][HOMENODE_NCOUNTERS]; /* [user|kernel][index] */
	homenode_u64 dram[HOMENODE_MAX_NODES];       /* LLC misses by home node, all modes */
	homenode_u64 writeback[HOMENODE_MAX_NODES];  /* lines written to DRAM, by home node, all modes */
	homenode_u64 transfer[HOMENODE_MAX_NODES];   /* lines from other CPUs' caches, by those CPUs' node */
	homenode_u64 clock;                          /* this vCPU's model clock, cycles */
	homenode_u64 running;                        /* 0 while halted */
	homenode_u64 waits;                          /* times it waited for the model clock */
	homenode_u64 sampling;                       /* guest: bit i = sampler i is on */
	homenode_u64 sample_head;                    /* plugin: samples put into the ring, ever */
	homenode_u64 sample_tail;                    /* guest: samples taken out, ever */
	homenode_u64 ordered;                        /* accesses that waited for the other CPUs' clocks */
	homenode_u64 unordered;                      /* of these, waits given up: the host was too late */
	struct homenode_lab_sampler sampler[HOMENODE_SAMPLERS];
	homenode_u64 pqr; /* guest: HOMENODE_PQR of the task that runs */
	homenode_u64 reserved[103];
};

struct homenode_lab_shared {
	/* page 0: written once by the plugin, before the guest starts */
	homenode_u64 magic;
	homenode_u64 version;
	homenode_u64 ncpu;
	homenode_u64 nnode;
	homenode_u64 nlink;
	homenode_u64 mhz;            /* model cycles per model-microsecond */
	homenode_u64 time_factor;    /* bursts and think times of loads are scaled by this */
	homenode_u64 llc_bytes;      /* of a node's LLC: what flushes it must be larger */
	homenode_u64 reserved0[56];
	/* 512: control, written by the guest */
	homenode_u64 state;          /* asked for: OFF, ON */
	homenode_u64 phase;          /* load programs credit their operations to it */
	homenode_u64 switch_to;      /* guest address of __switch_to_asm; 0 = unknown */
	/* 536: written by the host. While all vCPUs are idle, guest time runs this many times as
	 * fast as the host's. 0: at most in real time, also while they are busy */
	homenode_u64 idle_rate;
	homenode_u64 reserved1[60];
	/* 1024: status, written by the plugin */
	homenode_u64 applied;        /* the state in force */
	homenode_u64 model_cycles;   /* the shared model clock; monotone */
	homenode_u64 heartbeat;      /* counts how often the clock was advanced */
	homenode_u64 reserved2[125];
	/* 2048: per node and link, written by the plugin at each update of the queues */
	homenode_u64 mc_util_permille[HOMENODE_MAX_NODES];
	homenode_u64 link_util_permille[HOMENODE_MAX_LINKS];
	homenode_u64 mc_lines[HOMENODE_MAX_NODES];   /* cache lines served, reads and write-backs, total */
	homenode_u64 link_lines[HOMENODE_MAX_LINKS]; /* cache lines carried, total */
	homenode_u64 mc_busy_cycles[HOMENODE_MAX_NODES]; /* model cycles in which it served while ON, total */
	homenode_u64 mc_ticks;       /* model cycles that passed while ON */
	homenode_u64 reserved3[79];
	/* 4096: per vCPU */
	struct homenode_lab_vcpu vcpu[HOMENODE_MAX_CPUS];
	homenode_u64 reserved4[15872];
	/* 262144: per vCPU, written by the plugin */
	struct homenode_lab_sample ring[HOMENODE_MAX_CPUS][HOMENODE_SAMPLES];
	/* 786432: written by the guest */
	homenode_u64 qos;            /* 1: lines are counted by RMID, and limits hold */
	homenode_u64 reserved5[255];
	homenode_u64 ways[HOMENODE_MAX_CLOSIDS][HOMENODE_MAX_NODES];     /* that a class may fill, a bit each; 0: all */
	homenode_u64 throttle[HOMENODE_MAX_CLOSIDS][HOMENODE_MAX_NODES]; /* percent of its CPUs' requests; 0: all */
	/* 792576: written by the plugin */
	homenode_u64 qos_applied;
	homenode_u64 llc_ways;
	homenode_u64 reserved6[254];
	homenode_u64 held[HOMENODE_MAX_NODES][HOMENODE_MAX_RMIDS]; /* lines of a node's LLC */
	struct homenode_lab_traffic traffic[HOMENODE_MAX_CPUS][HOMENODE_MAX_RMIDS];
};

#ifdef __KERNEL__
#define homenode_static_assert(c) static_assert(c)
#else
#define homenode_static_assert(c) _Static_assert(c, #c)
#endif
homenode_static_assert(sizeof(struct homenode_lab_vcpu) == 2048);
homenode_static_assert(__builtin_offsetof(struct homenode_lab_shared, state) == 512);
homenode_static_assert(__builtin_offsetof(struct homenode_lab_shared, applied) == 1024);
homenode_static_assert(__builtin_offsetof(struct homenode_lab_shared, mc_util_permille) == 2048);
homenode_static_assert(__builtin_offsetof(struct homenode_lab_shared, vcpu) == 4096);
homenode_static_assert(__builtin_offsetof(struct homenode_lab_vcpu, sampler) == 960);
homenode_static_assert(__builtin_offsetof(struct homenode_lab_shared, ring) == 262144);
homenode_static_assert(__builtin_offsetof(struct homenode_lab_vcpu, pqr) == 1216);
homenode_static_assert(__builtin_offsetof(struct homenode_lab_shared, qos) == 786432);
homenode_static_assert(__builtin_offsetof(struct homenode_lab_shared, qos_applied) == 792576);
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
#define HOMENODE_EV_ATOMICS        0x21d0 /* MEM_INST_RETIRED.LOCK_LOADS */
#define HOMENODE_EV_TRANSFERS_LOCAL  0x04d2 /* MEM_LOAD_L3_HIT_RETIRED.XSNP_HITM; here stores, too */
#define HOMENODE_EV_TRANSFERS_REMOTE 0x04d3 /* MEM_LOAD_L3_MISS_RETIRED.REMOTE_HITM; here stores, too */
#define HOMENODE_EV_UPGRADES       0x40d3 /* the lab's own */
#define HOMENODE_EV_INVALIDATIONS  0x80d3 /* the lab's own */
#define HOMENODE_EV_WRITEBACKS     0x40b0 /* the lab's own */
#define HOMENODE_EV_UNCORE_REQUESTS 0x80b0 /* OFFCORE_REQUESTS.ALL_REQUESTS */
#define HOMENODE_EV_UNCORE_OUTSTANDING 0x0860 /* OFFCORE_REQUESTS_OUTSTANDING.ALL_DATA_RD; with a cmask: */
#define HOMENODE_EV_UNCORE_CRITICAL (1ULL << 24 | 0x0860) /* …CYCLES_WITH_DATA_RD */
#define HOMENODE_EV_LOAD_LATENCY   0x01cd /* MEM_TRANS_RETIRED.LOAD_LATENCY, least latency in config1 */
#define HOMENODE_EV_DRAM_NODE(n)   (0xf0 | (homenode_u64)(n) << 8) /* LLC misses by home node, all modes */

/* The same of a node's memory controller, PMU uncore_imc_<node>. Codes of
 * Skylake-SP's integrated memory controller. */
#define HOMENODE_IMC_CLOCKTICKS    0x0000 /* model cycles of the shared clock */
#define HOMENODE_IMC_CAS_READ      0x0304 /* CAS_COUNT.RD: lines read, for loads and for stores */
#define HOMENODE_IMC_CAS_WRITE     0x0c04 /* CAS_COUNT.WR: lines written back */
#define HOMENODE_IMC_RPQ_NOT_EMPTY 0x0011 /* RPQ_CYCLES_NE: model cycles in which it served */

#endif
