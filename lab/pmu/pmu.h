/* SPDX-License-Identifier: GPL-2.0 */
/* Shared by the parts of the lab's PMU module. */
#ifndef HOMENODE_PMU_H
#define HOMENODE_PMU_H

#include <linux/perf_event.h>

#include "homenode_lab.h"

extern struct homenode_lab_shared *homenode_lab;

/* Which of a CPU's counters can hold an event, from no need of one to the most demanding. */
enum homenode_class {
	HOMENODE_NO_COUNTER = 0, /* it has a fixed counter of its own, enough for any number of events */
	HOMENODE_ANY,            /* any general counter */
	HOMENODE_LOW_FOUR,       /* general counters 0 to 3 */
	HOMENODE_FIRST,          /* general counter 0 */
	HOMENODE_CLASSES,
};

/* A code that a PMU knows, and what it counts. A list ends with HOMENODE_NO_CODE. */
struct homenode_code {
	u64 config, config1; /* config1: the value of a register beside the counter; 0: it needs none */
	u32 sum;             /* bit i: the model's counter i. Of controllers: HOMENODE_LINES_… */
	u8 class;            /* enum homenode_class */
};
#define HOMENODE_NO_CODE (~0ULL)

#define HOMENODE_REGISTERS 2 /* at most, of a CPU */

/* A PMU of a CPU: what sysfs shows of it, and its rules. */
struct homenode_kind {
	const char *name;
	int type;    /* PERF_TYPE_RAW, or -1: the kernel picks one */
	int context; /* pmu.task_ctx_nr */
	bool generic;   /* takes PERF_TYPE_HARDWARE, PERF_TYPE_HW_CACHE and PERF_TYPE_RAW, too */
	bool unlimited; /* no event needs a counter */
	bool nodes;     /* knows HOMENODE_EV_DRAM_NODE */
	bool ops;       /* samples operations of any kind, as AMD's IBS, and counts nothing else */
	bool trace;     /* and writes them into a buffer of its own, as Arm's SPE */
	unsigned int counters;  /* general ones of a CPU */
	unsigned int registers; /* OFFCORE_RSP of a CPU, each with the value of one event or more */
	u64 config_bits, register_bits; /* others are refused */
	u64 (*code_of)(u64 config);     /* NULL: the config itself */
	const struct homenode_code *raw, *hardware, *cache; /* NULL: none */
	/* Sampled accesses: their codes, 0 = none, and which counter they take beside a sampler. */
	u64 loads, stores;
	u8 loads_class, stores_class;
	u64 auxiliary; /* must be in the group before loads with a data source; 0: no such rule */
	u64 (*source)(u64 access);
	const struct attribute_group **groups;
};

/* What an event of a memory controller counts: homenode_code.sum. */
#define HOMENODE_LINES_READ    1u
#define HOMENODE_LINES_WRITTEN 2u
#define HOMENODE_TICKS         4u
#define HOMENODE_BUSY_TICKS    8u

/* The PMUs of the memory controllers. A node's lines are spread evenly over its channels. */
struct homenode_uncore {
	const char *name;      /* with the PMU's number: "uncore_imc_%u" */
	unsigned int channels; /* of a node */
	/* false: a PMU is a channel of one node. true: PMU i is channel i of every node, and the
	 * event's CPU tells which. */
	bool everywhere;
	u64 config_bits;
	const struct homenode_code *codes;
	const struct attribute_group **groups;
};

/* The CPU that the guest's PMUs look like. */
struct homenode_personality {
	const char *name;
	const struct homenode_kind *core, *ops; /* ops: NULL, or a PMU that samples operations */
	const struct homenode_uncore *uncore;
};

/* lab.c, personalities.c */
extern const struct homenode_personality homenode_lab_personality;
extern const struct homenode_kind homenode_own_kind; /* the lab's events, beside another CPU's */
extern const struct homenode_personality *const homenode_personalities[]; /* NULL at the end */

/* A file of a PMU's sysfs folder, with this text. */
#define HOMENODE_FILE(file, text)                                                     \
	(&((struct perf_pmu_events_attr){                                             \
		   .attr = { .attr = { .name = (file), .mode = 0444 },                \
			     .show = perf_event_sysfs_show },                         \
		   .event_str = (text),                                               \
	   }).attr.attr)

/* core.c */
const struct homenode_kind *homenode_kind_of(const struct perf_event *event);
const struct homenode_code *homenode_find(const struct homenode_code *list, u64 config, u64 config1);
void *homenode_lookup(const char *name); /* a symbol that the kernel does not export; NULL: none */

/* sampling.c: events that hold one of the vCPU's samplers while they count.
 * All but init and exit run on the CPU that they act on, with interrupts off. */
int homenode_sampling_init(void);
void homenode_sampling_exit(void);
/* Makes event a sampling event; -ENOENT if it only counts. */
int homenode_sampling_event(struct perf_event *event, u8 *class);
bool homenode_samples(const struct perf_event *event);
int homenode_sampler_claim(struct perf_event *event); /* -EAGAIN: all are taken */
void homenode_sampler_release(struct perf_event *event);
bool homenode_sampler_start(struct perf_event *event); /* false: its buffer has no room */
void homenode_sampler_stop(struct perf_event *event);
u64 homenode_sampler_count(struct perf_event *event);
u64 homenode_intel_source(u64 access);
u64 homenode_amd_source(u64 access);

/* spe.c: all but setup and free run on the CPU that they act on, with interrupts off. */
#define HOMENODE_SPE_LOADS  BIT_ULL(33) /* of perf_event_attr.config */
#define HOMENODE_SPE_STORES BIT_ULL(34)
void *homenode_spe_setup(struct perf_event *event, void **pages, int count, bool snapshot);
void homenode_spe_free(void *aux);
bool homenode_spe_begin(struct perf_event *event);
void homenode_spe_end(void);
void homenode_spe_write(struct perf_event *event, const struct homenode_lab_sample *s);

/* uncore.c */
int homenode_uncore_init(const struct homenode_uncore *uncore);
void homenode_uncore_exit(void);
extern const struct attribute_group homenode_cpumask_group;

#endif
