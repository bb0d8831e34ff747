// SPDX-License-Identifier: GPL-2.0
/*
 * Arm's SPE as a guest sees it: records of operations in a buffer that the PMU writes by itself
 * (perf's AUX area). The driver (drivers/perf/arm_spe_pmu.c) passes pieces of it on when it has
 * filled as much as the reader wants to be told of, and when the event stops.
 *
 * A record has the form that Neoverse N2 writes, in a line of its own. Its time is that of the
 * counter from which the guest's clock is made: Arm's there, the TSC here. It was made when the
 * vCPU's ring was emptied, before another task ran.
 */
#include <linux/percpu.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>
#include <asm/msr.h>

#include "pmu.h"

#define LINE 64u

struct buffer {
	u8 *base;
	unsigned long size;
};

struct writer {
	struct perf_output_handle handle;
	unsigned long written; /* since the handle was taken */
};
static DEFINE_PER_CPU(struct writer, writers);

void *homenode_spe_setup(struct perf_event *event, void **pages, int count, bool snapshot)
{
	struct page **list;
	struct buffer *b;
	int i;

	if (count < 2 || snapshot)
		return NULL;
	b = kzalloc(sizeof(*b), GFP_KERNEL);
	list = kcalloc(count, sizeof(*list), GFP_KERNEL);
	if (b && list) {
		for (i = 0; i < count; i++)
			list[i] = virt_to_page(pages[i]);
		b->base = vmap(list, count, VM_MAP, PAGE_KERNEL);
		b->size = (unsigned long)count << PAGE_SHIFT;
	}
	kfree(list);
	if (b && b->base)
		return b;
	kfree(b);
	return NULL;
}

void homenode_spe_free(void *aux)
{
	struct buffer *b = aux;

	vunmap(b->base);
	kfree(b);
}

/* false: there is no buffer, or no room in it. */
bool homenode_spe_begin(struct perf_event *event)
{
	struct writer *w = this_cpu_ptr(&writers);

	w->written = 0;
	return perf_aux_output_begin(&w->handle, event);
}

void homenode_spe_end(void)
{
	struct writer *w = this_cpu_ptr(&writers);

	if (perf_get_aux(&w->handle))
		perf_aux_output_end(&w->handle, w->written);
	w->written = 0;
}

static u8 *put(u8 *at, u8 header, u64 payload, unsigned int bytes)
{
	*at = header;
	memcpy(at + 1, &payload, bytes);
	return at + 1 + bytes;
}

#define RETIRED  BIT(1)
#define L1       BIT(2)
#define L1REFILL BIT(3)
#define LLC      BIT(8)
#define LLC_MISS BIT(9)
#define REMOTE   BIT(10)
#define SNOOPED  BIT(23)
#define BEYOND   (RETIRED | L1 | L1REFILL | LLC)

/* Source and events of a load, by where it hit. */
static const struct {
	u8 source;
	u32 events;
} hits[16] = {
	[HOMENODE_HIT_L1] = { 0x0, RETIRED | L1 },
	[HOMENODE_HIT_L2] = { 0x8, RETIRED | L1 | L1REFILL },
	[HOMENODE_HIT_LLC] = { 0xb, BEYOND },
	[HOMENODE_HIT_LOCAL] = { 0xe, BEYOND | LLC_MISS },
	[HOMENODE_HIT_REMOTE] = { 0xd, BEYOND | LLC_MISS | REMOTE },
	[HOMENODE_HIT_PEER_LOCAL] = { 0x9, BEYOND | LLC_MISS | SNOOPED },
	[HOMENODE_HIT_PEER_REMOTE] = { 0xd, BEYOND | LLC_MISS | REMOTE | SNOOPED },
	[HOMENODE_HIT_UPGRADE] = { 0x8, RETIRED | L1 | L1REFILL },
};

/* The address of an instruction has the exception level in bits 61 and 62. */
static u64 ip_of(const struct homenode_lab_sample *s)
{
	u64 level = s->access & HOMENODE_ACCESS_KERNEL ? 1 : 0;

	return (s->ip & GENMASK_ULL(55, 0)) | level << 61 | BIT_ULL(63);
}

static void encode(u8 *at, const struct homenode_lab_sample *s)
{
	unsigned int hit = HOMENODE_ACCESS_HIT(s->access);
	bool store = s->access & HOMENODE_ACCESS_STORE;

	at = put(at, 0xb0, ip_of(s), 8);
	at = put(at, 0x49, store, 1);
	at = put(at, 0x98, min_t(u64, HOMENODE_ACCESS_LATENCY(s->access), 0xfff), 2); /* counters have 12 bits */
	at = put(at, 0xb2, s->addr & GENMASK_ULL(55, 0), 8);
	at = put(at, 0x62, hits[hit].events, 4);
	if (!store && hit != HOMENODE_HIT_UNKNOWN)
		at = put(at, 0x43, hits[hit].source, 1);
	put(at, 0x71, rdtsc_ordered(), 8);
}

static bool asked_for(const struct perf_event *event, const struct homenode_lab_sample *s)
{
	u64 filters = event->attr.config & (HOMENODE_SPE_LOADS | HOMENODE_SPE_STORES);

	if (HOMENODE_ACCESS_LATENCY(s->access) < event->attr.config2)
		return false;
	return !filters || filters & (s->access & HOMENODE_ACCESS_STORE ? HOMENODE_SPE_STORES : HOMENODE_SPE_LOADS);
}

/* The buffer's size is a multiple of the line, so a line never wraps. */
void homenode_spe_write(struct perf_event *event, const struct homenode_lab_sample *s)
{
	struct writer *w = this_cpu_ptr(&writers);
	struct buffer *b = perf_get_aux(&w->handle);
	u8 line[LINE] = {};

	if (!b || !asked_for(event, s))
		return;
	if (w->handle.size < w->written + LINE) {
		perf_aux_output_flag(&w->handle, PERF_AUX_FLAG_TRUNCATED);
		homenode_spe_end();
		return;
	}
	encode(line, s);
	memcpy(b->base + (w->handle.head + w->written) % b->size, line, LINE);
	w->written += LINE;
	if (w->handle.head + w->written >= w->handle.wakeup) {
		homenode_spe_end();
		homenode_spe_begin(event);
	}
}
