// SPDX-License-Identifier: GPL-2.0
/*
 * The lab's PMU gives a QEMU guest, which has none, a core PMU. The memory model on the host
 * keeps its counters, and the guest reads them through a shared page.
 *
 * It registers as "cpu" in the slot of PERF_TYPE_RAW, so that generic hardware
 * events, cache events and raw codes of perf_event_open(2) all reach it, per
 * task, per CPU and per cgroup; no program needs to know about the lab.
 *
 * Its codes are the lab's own (lab.c), or those of another CPU (personalities.c): then its PMUs
 * have that CPU's names, files and rules, and count the model's events by that CPU's codes. It is
 * stricter than hardware: a code that the personality does not know is refused (ENOENT), where
 * hardware counts something, or nothing.
 *
 * It samples loads by latency, and stores (sampling.c). Memory controllers have PMUs of their own
 * (uncore.c).
 *
 * Events that only count share the CPU's `counters` general counters. An event that finds none
 * waits, and perf rotates (perf_mux_hrtimer). As the lab's own, these need no general counter:
 * cycles and instructions, for which hardware has fixed counters (here enough for any number of
 * events); DRAM by node, the lab's own check; sampled events, which hold a sampler.
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
EXPORT_SYMBOL_GPL(homenode_lab); /* for homenode_resctrl */
#define lab homenode_lab

static char *personality = "lab";
module_param(personality, charp, 0444);
MODULE_PARM_DESC(personality, "CPU that the PMUs look like: lab (default), sapphire-rapids, zen-4, neoverse-n2");

#define OF_PERSONALITY UINT_MAX

/* Fewer: more multiplexing, and counts are estimates. Events that count already when this is
 * lowered go on until they are rotated out. */
static unsigned int counters = OF_PERSONALITY;
module_param(counters, uint, 0644);
MODULE_PARM_DESC(counters, "general counters of a CPU (default: the personality's, 8 for the lab; 0 = without limit)");

static unsigned int registers = OF_PERSONALITY;
module_param(registers, uint, 0644);
MODULE_PARM_DESC(registers, "OFFCORE_RSP registers of a CPU (default: the personality's; 0 = hidden, as by many hypervisors)");

/* What a CPU's events hold. */
struct holdings {
	unsigned int taken[HOMENODE_CLASSES]; /* general counters, by class */
	struct {
		u64 value;
		unsigned int users;
	} reg[HOMENODE_REGISTERS];
};
static DEFINE_PER_CPU(struct holdings, holdings);

struct core {
	struct pmu pmu;
	const struct homenode_kind *kind;
};
static struct core cores[3]; /* the CPU's; one of operations; the lab's own */
static unsigned int registered;

const struct homenode_kind *homenode_kind_of(const struct perf_event *event)
{
	return container_of(event->pmu, struct core, pmu)->kind;
}

const struct homenode_code *homenode_find(const struct homenode_code *list, u64 config, u64 config1)
{
	for (; list && list->config != HOMENODE_NO_CODE; list++)
		if (list->config == config && list->config1 == config1)
			return list;
	return NULL;
}

/* What an event counts is in hw.config: the sum in bits 0-31, the node + 1 in 32-39, the class in
 * 40-47, and in bit 48 that it needs the register whose value is its config1. */
static u64 pack(u32 sum, int node, u8 class, bool reg)
{
	return sum | (u64)(node + 1) << 32 | (u64)class << 40 | (u64)reg << 48;
}
static u32 sum_of(const struct perf_event *event)
{
	return event->hw.config;
}
static int node_of(const struct perf_event *event)
{
	return (int)(event->hw.config >> 32 & 0xff) - 1;
}
static u8 class_of(const struct perf_event *event)
{
	return event->hw.config >> 40;
}
static bool needs_register(const struct perf_event *event)
{
	return event->hw.config >> 48 & 1;
}

static u64 sum_counters(const struct perf_event *event, const struct homenode_lab_vcpu *v)
{
	unsigned long bits = sum_of(event);
	unsigned int i;
	u64 sum = 0;

	for_each_set_bit(i, &bits, HOMENODE_NCOUNTERS)
	{
		if (!event->attr.exclude_user)
			sum += READ_ONCE(v->counter[HOMENODE_USER][i]);
		if (!event->attr.exclude_kernel)
			sum += READ_ONCE(v->counter[HOMENODE_KERNEL][i]);
	}
	return sum;
}

/* The present values of this CPU's counters. Runs on the CPU that it reads. */
static u64 counters_now(struct perf_event *event)
{
	struct homenode_lab_vcpu *v = &lab->vcpu[smp_processor_id()];

	if (homenode_samples(event))
		return homenode_sampler_count(event);
	if (node_of(event) >= 0)
		return READ_ONCE(v->dram[node_of(event)]);
	return sum_counters(event, v);
}

static void pmu_read(struct perf_event *event)
{
	u64 now = counters_now(event);
	u64 before = local64_xchg(&event->hw.prev_count, now);

	if (homenode_kind_of(event)->trace)
		return; /* it counts nothing */
	local64_add(now - before, &event->count);
}

static void pmu_start(struct perf_event *event, int flags)
{
	local64_set(&event->hw.prev_count, counters_now(event));
	event->hw.state = 0;
	if (homenode_samples(event) && !homenode_sampler_start(event))
		event->hw.state = PERF_HES_STOPPED;
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

/* Events of a class, and of those that are more demanding, must fit into the class's counters. */
static bool counters_fit(const unsigned int taken[HOMENODE_CLASSES])
{
	const unsigned int most[HOMENODE_CLASSES] = { 0, READ_ONCE(counters), 4, 1 };
	unsigned int class, sum = 0;

	for (class = HOMENODE_CLASSES - 1; class > HOMENODE_NO_COUNTER; class--) {
		sum += taken[class];
		if (most[class] && sum > most[class])
			return false;
	}
	return true;
}

/* The register that has this value, or a free one; NULL: all have other values. */
static unsigned int *users_of(struct holdings *h, u64 value)
{
	unsigned int i, most = min(READ_ONCE(registers), (unsigned int)HOMENODE_REGISTERS);

	for (i = 0; i < most; i++)
		if (h->reg[i].users && h->reg[i].value == value)
			return &h->reg[i].users;
	for (i = 0; i < most; i++)
		if (!h->reg[i].users) {
			h->reg[i].value = value;
			return &h->reg[i].users;
		}
	return NULL;
}

/* An event that is held has one, even if `registers` was lowered since. */
static void give_register_back(struct holdings *h, u64 value)
{
	unsigned int i;

	for (i = 0; i < HOMENODE_REGISTERS; i++)
		if (h->reg[i].users && h->reg[i].value == value) {
			h->reg[i].users--;
			return;
		}
}

static int hold(struct holdings *h, const struct perf_event *event)
{
	unsigned int *users = NULL;

	if (needs_register(event)) {
		users = users_of(h, event->attr.config1);
		if (!users)
			return -EAGAIN;
	}
	h->taken[class_of(event)]++;
	if (!counters_fit(h->taken)) {
		h->taken[class_of(event)]--;
		return -EAGAIN;
	}
	if (users)
		++*users;
	return 0;
}

static void let_go(struct holdings *h, const struct perf_event *event)
{
	h->taken[class_of(event)]--;
	if (needs_register(event))
		give_register_back(h, event->attr.config1);
}

/* add and del of an event are on the same CPU, interrupts off. */
static int claim(struct perf_event *event)
{
	struct holdings *h = this_cpu_ptr(&holdings);
	int err = hold(h, event);

	if (err || !homenode_samples(event))
		return err;
	err = homenode_sampler_claim(event);
	if (err)
		let_go(h, event);
	return err;
}

static void release(struct perf_event *event)
{
	if (homenode_samples(event))
		homenode_sampler_release(event);
	let_go(this_cpu_ptr(&holdings), event);
}

static int pmu_add(struct perf_event *event, int flags)
{
	int err = claim(event);

	if (err)
		return err;
	event->hw.state = PERF_HES_STOPPED | PERF_HES_UPTODATE;
	if (flags & PERF_EF_START) {
		pmu_start(event, flags);
		if (event->hw.state & PERF_HES_STOPPED) {
			release(event);
			return -EINVAL;
		}
	}
	perf_event_update_userpage(event);
	return 0;
}

static void pmu_del(struct perf_event *event, int flags)
{
	pmu_stop(event, PERF_EF_UPDATE);
	release(event);
	perf_event_update_userpage(event);
}

/* What a group needs of a CPU that is otherwise free. */
struct demand {
	struct holdings h;
	unsigned int samplers;
	int err;
};

static void want(struct demand *d, const struct perf_event *event, const struct pmu *pmu)
{
	if (event->pmu != pmu)
		return; /* a software event, or one of the tracepoints' */
	d->err = d->err ?: hold(&d->h, event);
	d->samplers += homenode_samples(event);
}

/* A group is on the PMU as a whole or not at all: one that never fits is refused
 * here, as validate_group() of arch/x86/events/core.c does. The core holds the leader's context
 * meanwhile, so the siblings stay. Events that a new task inherits are let in: refusing them
 * would make fork(2) fail. */
static int check_group(struct perf_event *event)
{
	struct perf_event *leader = event->group_leader, *sibling;
	unsigned int samplers = homenode_kind_of(event)->ops ? 1 : HOMENODE_SAMPLERS;
	struct demand d = {};

	if (event->parent)
		return 0;
	want(&d, event, event->pmu);
	if (leader != event) {
		want(&d, leader, event->pmu);
		for_each_sibling_event(sibling, leader)
			want(&d, sibling, event->pmu);
	}
	return d.err || d.samplers > samplers ? -EINVAL : 0;
}

static bool is_raw(const struct perf_event *event)
{
	return event->attr.type == event->pmu->type || event->attr.type == PERF_TYPE_RAW;
}

static const struct homenode_code *code_for(const struct homenode_kind *kind, const struct perf_event *event)
{
	u64 config = event->attr.config;

	switch (event->attr.type) {
	case PERF_TYPE_HARDWARE:
		return homenode_find(kind->hardware, config, 0);
	case PERF_TYPE_HW_CACHE:
		return homenode_find(kind->cache, config, 0);
	}
	if (kind->code_of)
		config = kind->code_of(config);
	return homenode_find(kind->raw, config, kind->registers ? event->attr.config1 : 0);
}

/* -ENOENT: not an event of a node. */
static int node_event(const struct homenode_kind *kind, struct perf_event *event)
{
	u64 node = event->attr.config >> 8 & 0xff;

	if (!kind->nodes || !is_raw(event) || (event->attr.config & 0xff) != 0xf0 || node >= lab->nnode)
		return -ENOENT;
	event->hw.config = pack(0, node, HOMENODE_NO_COUNTER, false);
	return 0;
}

/* As x86_pmu_extra_regs() of arch/x86/events/core.c. */
static int check_register(const struct homenode_kind *kind, const struct homenode_code *code)
{
	if (code->config1 & ~kind->register_bits)
		return -EINVAL;
	return READ_ONCE(registers) ? 0 : -ENXIO;
}

static int count_event(const struct homenode_kind *kind, struct perf_event *event)
{
	const struct homenode_code *code;
	int err;

	if (is_sampling_event(event))
		return -EOPNOTSUPP;
	if (!node_event(kind, event))
		return 0;
	if (is_raw(event) && (event->attr.config & ~kind->config_bits))
		return -EINVAL;
	code = code_for(kind, event);
	if (!code)
		return -ENOENT;
	err = code->config1 ? check_register(kind, code) : 0;
	event->hw.config = pack(code->sum, -1, kind->unlimited ? HOMENODE_NO_COUNTER : code->class, code->config1);
	return err;
}

/* perf offers an event whose type no PMU has to all of them: PERF_TYPE_RAW, on Arm. */
static bool takes(const struct homenode_kind *kind, const struct perf_event *event)
{
	switch (event->attr.type) {
	case PERF_TYPE_HARDWARE:
	case PERF_TYPE_HW_CACHE:
	case PERF_TYPE_RAW:
		return kind->generic;
	}
	return event->attr.type == event->pmu->type;
}

static int pmu_event_init(struct perf_event *event)
{
	const struct homenode_kind *kind = homenode_kind_of(event);
	u8 class = HOMENODE_NO_COUNTER;
	int err;

	if (!takes(kind, event))
		return -ENOENT;
	err = homenode_sampling_event(event, &class);
	if (!err)
		event->hw.config = pack(0, -1, class, false);
	if (err == -ENOENT)
		err = count_event(kind, event);
	return err ?: check_group(event);
}

static int capabilities_of(const struct homenode_kind *kind)
{
	if (kind->trace)
		return PERF_PMU_CAP_EXCLUSIVE | PERF_PMU_CAP_ITRACE;
	return kind->ops ? PERF_PMU_CAP_NO_EXCLUDE : 0;
}

static int register_core(const struct homenode_kind *kind)
{
	struct core *c = &cores[registered];
	int err;

	c->kind = kind;
	c->pmu = (struct pmu){
		.module = THIS_MODULE,
		.task_ctx_nr = kind->context,
		.capabilities = capabilities_of(kind),
		.attr_groups = kind->groups,
		.event_init = pmu_event_init,
		.add = pmu_add,
		.del = pmu_del,
		.start = pmu_start,
		.stop = pmu_stop,
		.read = pmu_read,
		.setup_aux = kind->trace ? homenode_spe_setup : NULL,
		.free_aux = kind->trace ? homenode_spe_free : NULL,
	};
	err = perf_pmu_register(&c->pmu, kind->name, kind->type);
	registered += !err;
	return err;
}

static void unregister_cores(void)
{
	while (registered)
		perf_pmu_unregister(&cores[--registered].pmu);
}

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

static const struct homenode_personality *find_personality(void)
{
	const struct homenode_personality *const *p;

	for (p = homenode_personalities; *p; p++)
		if (!strcmp((*p)->name, personality))
			return *p;
	pr_err("homenode_pmu: no personality \"%s\": see 'modinfo homenode_pmu'\n", personality);
	return NULL;
}

static void set_defaults(const struct homenode_kind *kind)
{
	if (counters == OF_PERSONALITY)
		counters = kind->counters;
	if (registers == OF_PERSONALITY)
		registers = kind->registers;
}

/* A guest that looks like another CPU has the lab's own PMU, too, so that what the other counts
 * can be compared. */
static int register_cores(const struct homenode_personality *p)
{
	int err = register_core(p->core);

	if (!err && p->ops)
		err = register_core(p->ops);
	if (!err && p != &homenode_lab_personality)
		err = register_core(&homenode_own_kind);
	return err;
}

static int __init register_all(const struct homenode_personality *p)
{
	int err = homenode_sampling_init();

	if (err)
		return err;
	set_defaults(p->core);
	err = register_cores(p) ?: homenode_uncore_init(p->uncore);
	if (err) {
		unregister_cores();
		homenode_sampling_exit();
	}
	return err;
}

static int __init homenode_pmu_init(void)
{
	const struct homenode_personality *p = find_personality();
	int err;

	if (!p)
		return -EINVAL;
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
	err = register_all(p);
	if (err)
		memunmap(lab);
	return err;
}

static void __exit homenode_pmu_exit(void)
{
	homenode_uncore_exit();
	unregister_cores();
	homenode_sampling_exit();
	memunmap(lab);
}

module_init(homenode_pmu_init);
module_exit(homenode_pmu_exit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("PMU of homenode's lab, backed by a memory model on the host");
