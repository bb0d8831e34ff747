// SPDX-License-Identifier: GPL-2.0
/*
 * The lab's PMU gives a QEMU guest, which has none, a core PMU. The memory model on the host
 * keeps its counters, and the guest reads them through a shared page.
 *
 * It registers as "cpu" in the slot of PERF_TYPE_RAW, so that generic hardware
 * events, cache events and raw codes of perf_event_open(2) all reach it, per
 * task, per CPU and per cgroup; no program needs to know about the lab.
 *
 * It samples loads by latency, and stores (sampling.c). Memory controllers have PMUs of their own
 * (uncore.c).
 *
 * Events that only count share the CPU's `counters` general counters. An event that finds none
 * waits, and perf rotates (perf_mux_hrtimer). These need no general counter: cycles and
 * instructions, for which hardware has fixed counters (here enough for any number of events);
 * DRAM by node, the lab's own check; sampled events, which hold a sampler.
 *
 * An event without a general counter may still have to wait. Once a group fails to get on, perf's
 * core (merge_sched_in: can_add_hw = 0) tries no other hardware group of that context until the
 * next turn, whatever counters it needs. So cycles and DRAM by node also wait behind a crowd.
 * They are exact where enabled == running, as in a task of their own.
 * Not supported: sampling of other events, rdpmc.
 */
#include <linux/kprobes.h>
#include <linux/module.h>
#include <linux/pci.h>
#include <linux/percpu.h>

#include "pmu.h"

struct homenode_lab_shared *homenode_lab;
#define lab homenode_lab

/* 8: Ice Lake-SP's general counters of a logical CPU; Skylake-SP with SMT has 4.
 * Fewer: more multiplexing, and counts are estimates. Events that count already when this is
 * lowered go on until they are rotated out. */
static unsigned int counters = 8;
module_param(counters, uint, 0644);
MODULE_PARM_DESC(counters, "general counters of a CPU (default 8; 0 = without limit)");

static DEFINE_PER_CPU(unsigned int, counters_taken);

/* What an event sums: up to two counters, or the DRAM accesses of one node. */
struct meaning {
	s8 a, b;  /* counter indices, -1 = none */
	s8 node;  /* >= 0: dram[node] */
};

#define ONE(x)    { .a = (x), .b = -1, .node = -1 }
#define TWO(x, y) { .a = (x), .b = (y), .node = -1 }

static const struct {
	u64 code;
	struct meaning what;
} raw_events[] = {
	{ HOMENODE_EV_CYCLES, ONE(HOMENODE_CYCLES) },
	{ HOMENODE_EV_INSTRUCTIONS, ONE(HOMENODE_INSTRUCTIONS) },
	{ HOMENODE_EV_LOADS, ONE(HOMENODE_LOADS) },
	{ HOMENODE_EV_STORES, ONE(HOMENODE_STORES) },
	{ HOMENODE_EV_L1_MISSES, ONE(HOMENODE_L1_MISSES) },
	{ HOMENODE_EV_L2_MISSES, ONE(HOMENODE_L2_MISSES) },
	{ HOMENODE_EV_LLC_MISSES, ONE(HOMENODE_LLC_MISSES) },
	{ HOMENODE_EV_LOCAL_LOADS, ONE(HOMENODE_LOCAL_LOADS) },
	{ HOMENODE_EV_REMOTE_LOADS, ONE(HOMENODE_REMOTE_LOADS) },
	{ HOMENODE_EV_LOCAL_STORES, ONE(HOMENODE_LOCAL_STORES) },
	{ HOMENODE_EV_REMOTE_STORES, ONE(HOMENODE_REMOTE_STORES) },
	{ HOMENODE_EV_STALL_CYCLES, ONE(HOMENODE_STALL_CYCLES) },
	{ HOMENODE_EV_ATOMICS, ONE(HOMENODE_ATOMICS) },
	{ HOMENODE_EV_TRANSFERS_LOCAL, ONE(HOMENODE_TRANSFERS_LOCAL) },
	{ HOMENODE_EV_TRANSFERS_REMOTE, ONE(HOMENODE_TRANSFERS_REMOTE) },
	{ HOMENODE_EV_UPGRADES, ONE(HOMENODE_UPGRADES) },
	{ HOMENODE_EV_INVALIDATIONS, ONE(HOMENODE_INVALIDATIONS) },
	{ HOMENODE_EV_WRITEBACKS, ONE(HOMENODE_WRITEBACKS) },
	{ HOMENODE_EV_UNCORE_REQUESTS, ONE(HOMENODE_UNCORE_REQUESTS) },
	{ HOMENODE_EV_UNCORE_OUTSTANDING, ONE(HOMENODE_UNCORE_OUTSTANDING) },
	{ HOMENODE_EV_UNCORE_CRITICAL, ONE(HOMENODE_UNCORE_CRITICAL) },
};

#define CACHE(id, op, result)                                          \
	(PERF_COUNT_HW_CACHE_##id | PERF_COUNT_HW_CACHE_OP_##op << 8 | \
	 PERF_COUNT_HW_CACHE_RESULT_##result << 16)

/* node-loads counts all DRAM reads, node-load-misses the remote ones. */
static const struct {
	u64 config;
	struct meaning what;
} cache_events[] = {
	{ CACHE(NODE, READ, ACCESS), TWO(HOMENODE_LOCAL_LOADS, HOMENODE_REMOTE_LOADS) },
	{ CACHE(NODE, READ, MISS), ONE(HOMENODE_REMOTE_LOADS) },
	{ CACHE(NODE, WRITE, ACCESS), TWO(HOMENODE_LOCAL_STORES, HOMENODE_REMOTE_STORES) },
	{ CACHE(NODE, WRITE, MISS), ONE(HOMENODE_REMOTE_STORES) },
	{ CACHE(L1D, READ, ACCESS), ONE(HOMENODE_LOADS) },
	{ CACHE(L1D, WRITE, ACCESS), ONE(HOMENODE_STORES) },
	{ CACHE(LL, READ, ACCESS), ONE(HOMENODE_L2_MISSES) },
	{ CACHE(LL, READ, MISS), TWO(HOMENODE_LOCAL_LOADS, HOMENODE_REMOTE_LOADS) },
};

static int decode_hardware(u64 config, struct meaning *what)
{
	static const struct meaning generic[] = {
		[PERF_COUNT_HW_CPU_CYCLES] = ONE(HOMENODE_CYCLES),
		[PERF_COUNT_HW_INSTRUCTIONS] = ONE(HOMENODE_INSTRUCTIONS),
		[PERF_COUNT_HW_CACHE_REFERENCES] = ONE(HOMENODE_L2_MISSES),
		[PERF_COUNT_HW_CACHE_MISSES] = ONE(HOMENODE_LLC_MISSES),
		[PERF_COUNT_HW_STALLED_CYCLES_BACKEND] = ONE(HOMENODE_STALL_CYCLES),
	};

	if (config >= ARRAY_SIZE(generic) || (!generic[config].a && config))
		return -ENOENT;
	*what = generic[config];
	return 0;
}

static int decode_cache(u64 config, struct meaning *what)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(cache_events); i++)
		if (cache_events[i].config == config) {
			*what = cache_events[i].what;
			return 0;
		}
	return -ENOENT;
}

/* cmask, inv and edge are ignored, with one exception: with any cmask, outstanding requests are
 * not summed. Instead the cycles with at least one are counted. */
static u64 code_of(u64 config)
{
	u64 code = config & 0xffff;

	if (code == HOMENODE_EV_UNCORE_OUTSTANDING && (config >> 24 & 0xff))
		return HOMENODE_EV_UNCORE_CRITICAL;
	return code;
}

static int decode_raw(u64 config, struct meaning *what)
{
	u64 code = code_of(config);
	size_t i;

	if ((code & 0xff) == 0xf0) {
		if (code >> 8 >= lab->nnode)
			return -ENOENT;
		*what = (struct meaning){ .a = -1, .b = -1, .node = code >> 8 };
		return 0;
	}
	for (i = 0; i < ARRAY_SIZE(raw_events); i++)
		if (raw_events[i].code == code) {
			*what = raw_events[i].what;
			return 0;
		}
	return -ENOENT;
}

static int decode(struct perf_event *event, struct meaning *what)
{
	switch (event->attr.type) {
	case PERF_TYPE_HARDWARE:
		return decode_hardware(event->attr.config, what);
	case PERF_TYPE_HW_CACHE:
		return decode_cache(event->attr.config, what);
	default: /* PERF_TYPE_RAW is this PMU's own type */
		return decode_raw(event->attr.config, what);
	}
}

static u64 sum_counters(struct perf_event *event, struct homenode_lab_vcpu *v, int index)
{
	u64 sum = 0;

	if (index < 0)
		return 0;
	if (!event->attr.exclude_user)
		sum += READ_ONCE(v->counter[HOMENODE_USER][index]);
	if (!event->attr.exclude_kernel)
		sum += READ_ONCE(v->counter[HOMENODE_KERNEL][index]);
	return sum;
}

/* hw.config carries the struct meaning; see pmu_event_init */
static struct meaning meaning_of(const struct perf_event *event)
{
	u64 config = event->hw.config;

	return (struct meaning){ .a = config, .b = config >> 8, .node = config >> 16 };
}

static bool needs_counter(const struct perf_event *event)
{
	struct meaning what = meaning_of(event);

	return !homenode_samples(event) && what.node < 0 && what.a != HOMENODE_CYCLES &&
	       what.a != HOMENODE_INSTRUCTIONS;
}

/* The present values of this CPU's counters. Runs on the CPU that it reads. */
static u64 counters_now(struct perf_event *event)
{
	struct homenode_lab_vcpu *v = &lab->vcpu[smp_processor_id()];
	struct meaning what = meaning_of(event);

	if (homenode_samples(event))
		return homenode_sampler_count(event);
	if (what.node >= 0)
		return READ_ONCE(v->dram[what.node]);
	return sum_counters(event, v, what.a) + sum_counters(event, v, what.b);
}

static void pmu_read(struct perf_event *event)
{
	u64 now = counters_now(event);
	u64 before = local64_xchg(&event->hw.prev_count, now);

	local64_add(now - before, &event->count);
}

static void pmu_start(struct perf_event *event, int flags)
{
	local64_set(&event->hw.prev_count, counters_now(event));
	event->hw.state = 0;
	if (homenode_samples(event))
		homenode_sampler_start(event);
}

static void pmu_stop(struct perf_event *event, int flags)
{
	if (event->hw.state & PERF_HES_STOPPED)
		return;
	if (homenode_samples(event))
		homenode_sampler_stop(event);
	pmu_read(event);
	event->hw.state |= PERF_HES_STOPPED | PERF_HES_UPTODATE;
}

/* add and del of an event are on the same CPU, interrupts off. */
static int claim(struct perf_event *event)
{
	unsigned int most = READ_ONCE(counters);

	if (homenode_samples(event))
		return homenode_sampler_claim(event);
	if (!needs_counter(event))
		return 0;
	if (most && __this_cpu_read(counters_taken) >= most)
		return -EAGAIN;
	__this_cpu_inc(counters_taken);
	return 0;
}

static void release(struct perf_event *event)
{
	if (homenode_samples(event))
		homenode_sampler_release(event);
	else if (needs_counter(event))
		__this_cpu_dec(counters_taken);
}

static int pmu_add(struct perf_event *event, int flags)
{
	int err = claim(event);

	if (err)
		return err;
	event->hw.state = PERF_HES_STOPPED | PERF_HES_UPTODATE;
	if (flags & PERF_EF_START)
		pmu_start(event, flags);
	perf_event_update_userpage(event);
	return 0;
}

static void pmu_del(struct perf_event *event, int flags)
{
	pmu_stop(event, PERF_EF_UPDATE);
	release(event);
	perf_event_update_userpage(event);
}

/* The counters that a group needs on a CPU. */
struct demand {
	unsigned int counters, samplers;
};

static void want(struct demand *d, const struct perf_event *event, const struct pmu *pmu)
{
	if (event->pmu != pmu)
		return; /* a software event, or one of the tracepoints' */
	d->counters += needs_counter(event);
	d->samplers += homenode_samples(event);
}

/* A group is on the PMU as a whole or not at all: one that never fits is refused
 * here, as validate_group() of arch/x86/events/core.c does. The core holds the leader's context
 * meanwhile, so the siblings stay. Events that a new task inherits are let in: refusing them
 * would make fork(2) fail. */
static int check_group(struct perf_event *event)
{
	struct perf_event *leader = event->group_leader, *sibling;
	unsigned int most = READ_ONCE(counters);
	struct demand d = {};

	if (event->parent)
		return 0;
	want(&d, event, event->pmu);
	if (leader != event) {
		want(&d, leader, event->pmu);
		for_each_sibling_event(sibling, leader)
			want(&d, sibling, event->pmu);
	}
	return (most && d.counters > most) || d.samplers > HOMENODE_SAMPLERS ? -EINVAL : 0;
}

static int pmu_event_init(struct perf_event *event)
{
	struct meaning what;
	int err;

	if (event->attr.type != event->pmu->type && event->attr.type != PERF_TYPE_HARDWARE &&
	    event->attr.type != PERF_TYPE_HW_CACHE)
		return -ENOENT;
	err = homenode_sampling_event(event);
	if (err != -ENOENT)
		return err ?: check_group(event);
	if (is_sampling_event(event))
		return -EOPNOTSUPP;
	err = decode(event, &what);
	if (err)
		return err;
	event->hw.config = (u8)what.a | (u64)(u8)what.b << 8 | (u64)(u8)what.node << 16;
	return check_group(event);
}

PMU_FORMAT_ATTR(event, "config:0-7");
PMU_FORMAT_ATTR(umask, "config:8-15");
PMU_FORMAT_ATTR(cmask, "config:24-31");
PMU_FORMAT_ATTR(ldlat, "config1:0-15");

static struct attribute *format_attrs[] = {
	&format_attr_event.attr,
	&format_attr_umask.attr,
	&format_attr_cmask.attr,
	&format_attr_ldlat.attr,
	NULL,
};

static const struct attribute_group format_group = {
	.name = "format",
	.attrs = format_attrs,
};

/* The first two have the names that perf mem looks for. The others have the load program's names,
 * where perf's own names are unclear. */
PMU_EVENT_ATTR_STRING(mem-loads, event_mem_loads, "event=0xcd,umask=0x1,ldlat=3");
PMU_EVENT_ATTR_STRING(mem-stores, event_mem_stores, "event=0xd0,umask=0x82");
PMU_EVENT_ATTR_STRING(local-loads, event_local_loads, "event=0xd3,umask=0x1");
PMU_EVENT_ATTR_STRING(remote-loads, event_remote_loads, "event=0xd3,umask=0x2");
PMU_EVENT_ATTR_STRING(local-stores, event_local_stores, "event=0xd3,umask=0x10");
PMU_EVENT_ATTR_STRING(remote-stores, event_remote_stores, "event=0xd3,umask=0x20");
PMU_EVENT_ATTR_STRING(stall-cycles, event_stall_cycles, "event=0xa3,umask=0x14");
PMU_EVENT_ATTR_STRING(uncore-requests, event_requests, "event=0xb0,umask=0x80");
PMU_EVENT_ATTR_STRING(uncore-outstanding, event_outstanding, "event=0x60,umask=0x8");
PMU_EVENT_ATTR_STRING(uncore-critical, event_critical, "event=0x60,umask=0x8,cmask=0x1");
PMU_EVENT_ATTR_STRING(transfers-local, event_transfers_local, "event=0xd2,umask=0x4");
PMU_EVENT_ATTR_STRING(transfers-remote, event_transfers_remote, "event=0xd3,umask=0x4");
PMU_EVENT_ATTR_STRING(upgrades, event_upgrades, "event=0xd3,umask=0x40");
PMU_EVENT_ATTR_STRING(invalidations, event_invalidations, "event=0xd3,umask=0x80");
PMU_EVENT_ATTR_STRING(atomics, event_atomics, "event=0xd0,umask=0x21");
PMU_EVENT_ATTR_STRING(writebacks, event_writebacks, "event=0xb0,umask=0x40");

static struct attribute *event_attrs[] = {
	&event_mem_loads.attr.attr,
	&event_mem_stores.attr.attr,
	&event_local_loads.attr.attr,
	&event_remote_loads.attr.attr,
	&event_local_stores.attr.attr,
	&event_remote_stores.attr.attr,
	&event_stall_cycles.attr.attr,
	&event_requests.attr.attr,
	&event_outstanding.attr.attr,
	&event_critical.attr.attr,
	&event_transfers_local.attr.attr,
	&event_transfers_remote.attr.attr,
	&event_upgrades.attr.attr,
	&event_invalidations.attr.attr,
	&event_atomics.attr.attr,
	&event_writebacks.attr.attr,
	NULL,
};

static const struct attribute_group events_group = {
	.name = "events",
	.attrs = event_attrs,
};

static ssize_t identifier_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "homenode-lab\n");
}
static DEVICE_ATTR_RO(identifier);

static struct attribute *identifier_attrs[] = { &dev_attr_identifier.attr, NULL };
const struct attribute_group homenode_identifier_group = { .attrs = identifier_attrs };

static const struct attribute_group *pmu_groups[] = {
	&format_group,
	&events_group,
	&homenode_identifier_group,
	NULL,
};

static struct pmu pmu = {
	.module = THIS_MODULE,
	.task_ctx_nr = perf_hw_context,
	.attr_groups = pmu_groups,
	.event_init = pmu_event_init,
	.add = pmu_add,
	.del = pmu_del,
	.start = pmu_start,
	.stop = pmu_stop,
	.read = pmu_read,
};

/* Only a kprobe can look such a symbol up for a module. It is registered disabled: 6.1's
 * register_kprobe() still finds the address, and writes no breakpoint into code that every CPU
 * runs. */
void *homenode_lookup(const char *name)
{
	struct kprobe kp = { .symbol_name = name, .flags = KPROBE_FLAG_DISABLED };
	void *addr;

	if (register_kprobe(&kp) < 0)
		return NULL;
	addr = kp.addr;
	unregister_kprobe(&kp);
	return addr;
}

/* The plugin empties the virtually tagged L1 at every context switch, which it recognises by this
 * address. */
static u64 context_switch_address(void)
{
	return (u64)(homenode_lookup("__switch_to_asm") ?: homenode_lookup("__switch_to"));
}

static struct homenode_lab_shared *map_lab(void)
{
	struct pci_dev *dev = pci_get_device(0x1af4, 0x1110, NULL);
	void *p;

	if (!dev)
		return NULL;
	p = memremap(pci_resource_start(dev, 2), sizeof(*lab), MEMREMAP_WB);
	pci_dev_put(dev);
	return p;
}

static int __init register_all(void)
{
	int err = homenode_sampling_init();

	if (err)
		goto unmap;
	err = perf_pmu_register(&pmu, "cpu", PERF_TYPE_RAW);
	if (err)
		goto no_sampling;
	err = homenode_uncore_init();
	if (!err)
		return 0;
	perf_pmu_unregister(&pmu);
no_sampling:
	homenode_sampling_exit();
unmap:
	memunmap(lab);
	return err;
}

static int __init homenode_pmu_init(void)
{
	lab = map_lab();
	if (!lab) {
		pr_err("homenode_pmu: no ivshmem device 1af4:1110 here: this module works only in homenode's lab\n");
		return -ENODEV;
	}
	if (lab->magic != HOMENODE_LAB_MAGIC || lab->version != HOMENODE_LAB_VERSION) {
		pr_err("homenode_pmu: the shared page has version %llu, this module is for %d\n",
		       lab->version, HOMENODE_LAB_VERSION);
		memunmap(lab);
		return -EINVAL;
	}
	lab->switch_to = context_switch_address();
	if (!lab->switch_to)
		pr_warn("homenode_pmu: context switches cannot be seen: L1 hits across processes are possible\n");
	return register_all();
}

static void __exit homenode_pmu_exit(void)
{
	homenode_uncore_exit();
	perf_pmu_unregister(&pmu);
	homenode_sampling_exit();
	memunmap(lab);
}

module_init(homenode_pmu_init);
module_exit(homenode_pmu_exit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("PMU of homenode's lab, backed by a memory model on the host");
