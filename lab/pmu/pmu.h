/* SPDX-License-Identifier: GPL-2.0 */
/* Shared by the parts of the lab's PMU module. */
#ifndef HOMENODE_PMU_H
#define HOMENODE_PMU_H

#include <linux/perf_event.h>

#include "homenode_lab.h"

extern struct homenode_lab_shared *homenode_lab;

/* sampling.c: events that hold one of the vCPU's samplers while they count.
 * All but init and exit run on the CPU that they act on, with interrupts off. */
int homenode_sampling_init(void);
void homenode_sampling_exit(void);
/* Makes event a sampling event; -ENOENT if it only counts. */
int homenode_sampling_event(struct perf_event *event);
bool homenode_samples(const struct perf_event *event);
int homenode_sampler_claim(struct perf_event *event); /* -EAGAIN: all are taken */
void homenode_sampler_release(struct perf_event *event);
void homenode_sampler_start(struct perf_event *event);
void homenode_sampler_stop(struct perf_event *event);
u64 homenode_sampler_count(struct perf_event *event);

/* uncore.c: one PMU per node */
int homenode_uncore_init(void);
void homenode_uncore_exit(void);

/* A symbol that the kernel does not export; NULL if there is none of that name. */
void *homenode_lookup(const char *name);

extern const struct attribute_group homenode_identifier_group;

#endif
