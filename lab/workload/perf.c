/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "homenode_lab.h"
#include "load.h"

static const struct {
	const char *name;
	uint64_t config;
} known[] = {
	{ "cycles", HOMENODE_EV_CYCLES },
	{ "instructions", HOMENODE_EV_INSTRUCTIONS },
	{ "loads", HOMENODE_EV_LOADS },
	{ "stores", HOMENODE_EV_STORES },
	{ "l1-misses", HOMENODE_EV_L1_MISSES },
	{ "l2-misses", HOMENODE_EV_L2_MISSES },
	{ "llc-misses", HOMENODE_EV_LLC_MISSES },
	{ "local-loads", HOMENODE_EV_LOCAL_LOADS },
	{ "remote-loads", HOMENODE_EV_REMOTE_LOADS },
	{ "local-stores", HOMENODE_EV_LOCAL_STORES },
	{ "remote-stores", HOMENODE_EV_REMOTE_STORES },
	{ "stall-cycles", HOMENODE_EV_STALL_CYCLES },
	{ "uncore-requests", HOMENODE_EV_UNCORE_REQUESTS },
	{ "uncore-outstanding", HOMENODE_EV_UNCORE_OUTSTANDING },
	{ "uncore-critical", HOMENODE_EV_UNCORE_CRITICAL },
	{ "transfers-local", HOMENODE_EV_TRANSFERS_LOCAL },
	{ "transfers-remote", HOMENODE_EV_TRANSFERS_REMOTE },
	{ "upgrades", HOMENODE_EV_UPGRADES },
	{ "invalidations", HOMENODE_EV_INVALIDATIONS },
	{ "atomics", HOMENODE_EV_ATOMICS },
	{ "writebacks", HOMENODE_EV_WRITEBACKS },
};

/* dram0 … dram15 count every mode of the vCPU, so they are opened with the kernel included. */
static bool parse_dram(struct homenode_perf_event *e)
{
	unsigned long node;
	char *end;

	if (strncmp(e->name, "dram", 4) || e->name[4] < '0' || e->name[4] > '9')
		return false;
	node = strtoul(e->name + 4, &end, 10);
	if (*end || node >= HOMENODE_MAX_NODES)
		return false;
	e->config = HOMENODE_EV_DRAM_NODE(node);
	e->kernel = true;
	return true;
}

static void parse_event(struct homenode_perf_event *e, const char *text, size_t length)
{
	const char *colon = memchr(text, ':', length);
	size_t name = colon ? (size_t)(colon - text) : length, suffix = colon ? length - name - 1 : 0;

	memset(e, 0, sizeof(*e));
	if (name == 0 || name >= sizeof(e->name))
		homenode_fail(2, "parse --perf \"%.*s\": not an event name; use e.g. loads,remote-loads:uk,dram0",
			      (int)length, text);
	memcpy(e->name, text, name);
	if (!parse_dram(e)) {
		for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
			if (!strcmp(known[i].name, e->name))
				e->config = known[i].config;
		if (!e->config)
			homenode_fail(2, "parse --perf \"%s\": unknown event; use e.g. loads,remote-loads:uk,dram0", e->name);
		e->kernel = suffix == 2 && !memcmp(colon + 1, "uk", 2);
	}
	if (colon && !(suffix == 1 && colon[1] == 'u') && !(suffix == 2 && !memcmp(colon + 1, "uk", 2)))
		homenode_fail(2, "parse --perf \"%.*s\": unknown suffix; use :u or :uk", (int)length, text);
}

/* A guest that looks like another CPU has the lab's codes on a PMU of their own. */
static uint32_t lab_type(void)
{
	FILE *f = fopen("/sys/bus/event_source/devices/homenode_lab/type", "r");
	unsigned int type;

	if (!f)
		return PERF_TYPE_RAW;
	if (fscanf(f, "%u", &type) != 1)
		type = PERF_TYPE_RAW;
	fclose(f);
	return type;
}

void homenode_perf_parse(struct homenode_perf_plan *plan, const char *text)
{
	plan->n = 0;
	plan->type = lab_type();
	for (;;) {
		size_t length = strcspn(text, ",");

		if (plan->n == HOMENODE_PERF_EVENTS)
			homenode_fail(2, "parse --perf: more than %d events; ask for fewer", HOMENODE_PERF_EVENTS);
		parse_event(&plan->event[plan->n], text, length);
		for (unsigned int i = 0; i < plan->n; i++)
			if (!strcmp(plan->event[i].name, plan->event[plan->n].name))
				homenode_fail(2, "parse --perf \"%s\": named twice; name it once", plan->event[i].name);
		plan->n++;
		if (!text[length])
			return;
		text += length + 1;
	}
}

static int open_event(uint32_t type, const struct homenode_perf_event *e, int group)
{
	struct perf_event_attr a = {
		.type = type,
		.size = sizeof(a),
		.config = e->config,
		.disabled = group < 0, /* a sibling follows its leader */
		.exclude_kernel = !e->kernel,
		.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING,
	};

	return (int)syscall(SYS_perf_event_open, &a, 0, -1, group, PERF_FLAG_FD_CLOEXEC);
}

void homenode_perf_open(struct homenode_perf *p, const struct homenode_perf_plan *plan)
{
	int group = -1;

	p->n = plan->n;
	for (unsigned int i = 0; i < p->n; i++) {
		p->fd[i] = open_event(plan->type, &plan->event[i], group);
		p->leads[i] = group < 0;
		if (p->fd[i] < 0 && group >= 0) { /* it does not fit this group, so it starts the next one */
			p->fd[i] = open_event(plan->type, &plan->event[i], -1);
			p->leads[i] = true;
		}
		if (p->fd[i] < 0)
			homenode_fail(2,
				      "open perf event %s (raw 0x%llx): %s; load the lab's PMU module or leave the event out of --perf",
				      plan->event[i].name, (unsigned long long)plan->event[i].config, strerror(errno));
		if (p->leads[i])
			group = p->fd[i];
	}
}

static void switch_all(const struct homenode_perf *p, unsigned long request)
{
	for (unsigned int i = 0; i < p->n; i++)
		if (p->leads[i])
			ioctl(p->fd[i], request, 0);
}

void homenode_perf_enable(const struct homenode_perf *p)
{
	switch_all(p, PERF_EVENT_IOC_ENABLE);
}

void homenode_perf_disable(const struct homenode_perf *p)
{
	switch_all(p, PERF_EVENT_IOC_DISABLE);
}

void homenode_perf_finish(struct homenode_perf *p)
{
	for (unsigned int i = 0; i < p->n; i++) {
		uint64_t v[3]; /* value, time enabled, time running */

		/* A count that was off the PMU for a while would be an estimate, and one that was
		 * never on it is not 0. Both are unknown. */
		p->whole[i] = read(p->fd[i], v, sizeof(v)) == (ssize_t)sizeof(v) && v[1] == v[2] && v[2] > 0;
		p->value[i] = p->whole[i] ? v[0] : 0;
	}
	for (unsigned int i = 0; i < p->n; i++)
		close(p->fd[i]);
}
