/* SPDX-License-Identifier: Apache-2.0 */
/* Self counting: each worker counts itself, by raw codes of homenode_lab.h. */
#ifndef HOMENODE_PERF_H
#define HOMENODE_PERF_H

#include <stdbool.h>
#include <stdint.h>

#define HOMENODE_PERF_EVENTS 32

struct homenode_perf_event {
	char name[24];
	uint64_t config;
	bool kernel; /* counts kernel mode too */
};

struct homenode_perf_plan {
	unsigned int n;
	uint32_t type; /* perf_event_attr.type of the lab's codes */
	struct homenode_perf_event event[HOMENODE_PERF_EVENTS];
};

struct homenode_perf {
	unsigned int n;
	int fd[HOMENODE_PERF_EVENTS];
	bool leads[HOMENODE_PERF_EVENTS]; /* group leader: enabling it enables its group */
	uint64_t value[HOMENODE_PERF_EVENTS];
	bool whole[HOMENODE_PERF_EVENTS]; /* false: was off the PMU for a while, value is unknown */
};

/* Names separated by commas, each with an optional :u or :uk; fails on bad input. */
void homenode_perf_parse(struct homenode_perf_plan *plan, const char *text);
/* Opens the plan on the calling thread, disabled; fails with exit code 2 when an event is not available. */
void homenode_perf_open(struct homenode_perf *p, const struct homenode_perf_plan *plan);
void homenode_perf_enable(const struct homenode_perf *p);
void homenode_perf_disable(const struct homenode_perf *p);
/* Reads all values, then closes. */
void homenode_perf_finish(struct homenode_perf *p);

#endif
