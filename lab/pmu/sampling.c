// SPDX-License-Identifier: GPL-2.0
/*
 * Sampled accesses, as hardware's precise load-latency and store events give
 * them: data address, instruction, latency, where it hit.
 *
 *	plugin ──▶ ring of the vCPU ──drain──▶ perf's ring buffer of each event
 *
 * 1. An event holds one of its vCPU's samplers while it is scheduled in; with
 *    none left, perf rotates (as with hardware's counters).
 * 2. The plugin counts and records during the access itself, on the vCPU's own thread. So an
 *    event that this CPU switched off makes no more samples.
 * 3. perf credits a sample to the current task. So the ring is emptied before another task runs
 *    (the scheduler's tracepoint), before the event stops, and every 2 ms, so that it does not
 *    fill up.
 * 4. Samples that found the ring full are reported (PERF_RECORD_LOST_SAMPLES).
 *    Nothing is throttled: at most one ring of samples comes every 2 ms.
 *
 * A sample's time is the time when the ring was emptied. Call chains and registers are
 * refused: they are not those of the access.
 */
#include <linux/hrtimer.h>
#include <linux/percpu.h>
#include <linux/tracepoint.h>
#include <asm/segment.h>

#include "pmu.h"

#define DRAIN_NS 2000000 /* longer: samples get lost; shorter: more interrupts in the guest */

struct cpu_samplers {
	struct perf_event *event[HOMENODE_SAMPLERS]; /* the event that holds it */
	u64 lost[HOMENODE_SAMPLERS];                 /* of these, reported */
	struct hrtimer timer;
};
static DEFINE_PER_CPU(struct cpu_samplers, samplers);

static void (*log_lost)(struct perf_event *event, u64 lost);

/* hw.config_base carries the filter: 0 = an event that only counts */
bool homenode_samples(const struct perf_event *event)
{
	return event->hw.config_base != 0;
}

static struct homenode_lab_vcpu *this_vcpu(void)
{
	return &homenode_lab->vcpu[smp_processor_id()];
}

static struct homenode_lab_sampler *sampler_of(struct perf_event *event)
{
	return &this_vcpu()->sampler[event->hw.idx];
}

u64 homenode_sampler_count(struct perf_event *event)
{
	return READ_ONCE(sampler_of(event)->count);
}

#define HIT(where)  (PERF_MEM_S(LVL, HIT) | PERF_MEM_S(LVL, where))
#define NUMBER(n)   PERF_MEM_S(LVLNUM, n)
#define SNOOP(what) PERF_MEM_S(SNOOP, what)
#define FAR         PERF_MEM_S(REMOTE, REMOTE)
#define UNKNOWN     (PERF_MEM_S(LVL, NA) | SNOOP(NA))

static u64 op_of(u64 access)
{
	return access & HOMENODE_ACCESS_STORE ? PERF_MEM_S(OP, STORE) : PERF_MEM_S(OP, LOAD);
}

/* A line that another CPU had modified is reported as on Intel: as an L3 hit on the node or in
 * another node's cache, since the L3 finds it, with snoop HITM. An upgrade found its data in the
 * CPU's private caches, but needed the right to write from outside: it is reported as L2, the
 * outer one. Snoop HIT means that others had the line, too, unmodified. All other accesses took
 * no line from a CPU. Page walks are not modelled, so the TLB level is unknown. */
u64 homenode_intel_source(u64 access)
{
	static const u64 where[16] = {
		[HOMENODE_HIT_UNKNOWN] = UNKNOWN | NUMBER(NA),
		[HOMENODE_HIT_L1] = HIT(L1) | NUMBER(L1) | SNOOP(NONE),
		[HOMENODE_HIT_L2] = HIT(L2) | NUMBER(L2) | SNOOP(NONE),
		[HOMENODE_HIT_LLC] = HIT(L3) | NUMBER(L3) | SNOOP(NONE),
		[HOMENODE_HIT_LOCAL] = HIT(LOC_RAM) | NUMBER(RAM) | SNOOP(NONE),
		[HOMENODE_HIT_REMOTE] = HIT(REM_RAM1) | NUMBER(RAM) | FAR | SNOOP(NONE),
		[HOMENODE_HIT_PEER_LOCAL] = HIT(L3) | NUMBER(L3) | SNOOP(HITM),
		[HOMENODE_HIT_PEER_REMOTE] = HIT(REM_CCE1) | NUMBER(ANY_CACHE) | FAR | SNOOP(HITM),
		[HOMENODE_HIT_UPGRADE] = HIT(L2) | NUMBER(L2) | SNOOP(HIT),
	};

	return op_of(access) | where[HOMENODE_ACCESS_HIT(access)] | PERF_MEM_S(LOCK, NA) | PERF_MEM_S(TLB, NA);
}

/* As perf_ibs_get_data_src() of arch/x86/events/amd/ibs.c in 6.1 does it for Zen 4: no
 * mem_lvl_num; another core complex is one hop away on the node and two on another; of a store it
 * is known only whether the own caches had the line. */
u64 homenode_amd_source(u64 access)
{
	static const u64 where[16] = {
		[HOMENODE_HIT_UNKNOWN] = UNKNOWN,
		[HOMENODE_HIT_L1] = HIT(L1) | SNOOP(NA),
		[HOMENODE_HIT_L2] = HIT(L2) | SNOOP(NA),
		[HOMENODE_HIT_LLC] = HIT(L3) | SNOOP(NA),
		[HOMENODE_HIT_LOCAL] = HIT(LOC_RAM) | SNOOP(NA),
		[HOMENODE_HIT_REMOTE] = HIT(REM_RAM1) | SNOOP(NA),
		[HOMENODE_HIT_PEER_LOCAL] = HIT(REM_CCE1) | SNOOP(HITM),
		[HOMENODE_HIT_PEER_REMOTE] = HIT(REM_CCE2) | SNOOP(HITM),
		[HOMENODE_HIT_UPGRADE] = HIT(L2) | SNOOP(NA),
	};
	unsigned int hit = HOMENODE_ACCESS_HIT(access);
	bool own = hit == HOMENODE_HIT_L1 || hit == HOMENODE_HIT_L2 || hit == HOMENODE_HIT_UPGRADE;

	if ((access & HOMENODE_ACCESS_STORE) && !own)
		hit = HOMENODE_HIT_UNKNOWN;
	return op_of(access) | where[hit] | PERF_MEM_S(LOCK, NA) | PERF_MEM_S(TLB, NA);
}

/* IBS gives the latency of a load that missed L1, and no other. */
static u64 latency_of(const struct homenode_kind *kind, u64 access)
{
	if (kind->ops && ((access & HOMENODE_ACCESS_STORE) || HOMENODE_ACCESS_HIT(access) == HOMENODE_HIT_L1))
		return 0;
	return HOMENODE_ACCESS_LATENCY(access);
}

static void emit(struct perf_event *event, const struct homenode_lab_sample *s)
{
	const struct homenode_kind *kind = homenode_kind_of(event);
	/* of the access; perf takes address and mode from here */
	struct pt_regs regs = {
		.ip = s->ip,
		.cs = s->access & HOMENODE_ACCESS_KERNEL ? __KERNEL_CS : __USER_CS,
		.flags = X86_EFLAGS_FIXED | PERF_EFLAGS_EXACT,
	};
	struct perf_sample_data data;

	if (kind->trace) {
		homenode_spe_write(event, s);
		return;
	}
	perf_sample_data_init(&data, s->addr, event->hw.sample_period);
	data.weight.full = latency_of(kind, s->access);
	data.data_src.val = kind->source(s->access);
	data.sample_flags |= PERF_SAMPLE_WEIGHT_TYPE | PERF_SAMPLE_DATA_SRC;
	READ_ONCE(event->overflow_handler)(event, &data, &regs);
}

static void report_lost(struct cpu_samplers *c, struct homenode_lab_vcpu *v)
{
	unsigned int i;

	for (i = 0; i < HOMENODE_SAMPLERS; i++) {
		u64 lost = READ_ONCE(v->sampler[i].lost) - c->lost[i];

		c->lost[i] += lost;
		if (lost && c->event[i] && log_lost)
			log_lost(c->event[i], lost);
	}
}

/* Sampling pauses meanwhile, as hardware's does in its interrupt. */
static void drain(struct cpu_samplers *c)
{
	struct homenode_lab_vcpu *v = this_vcpu();
	const struct homenode_lab_sample *ring = homenode_lab->ring[smp_processor_id()];
	u64 on = v->sampling;

	WRITE_ONCE(v->sampling, 0);
	while (v->sample_tail != READ_ONCE(v->sample_head)) {
		struct homenode_lab_sample s = ring[v->sample_tail % HOMENODE_SAMPLES];
		struct perf_event *event = c->event[HOMENODE_ACCESS_SAMPLER(s.access) % HOMENODE_SAMPLERS];

		v->sample_tail++;
		if (event)
			emit(event, &s);
	}
	report_lost(c, v);
	WRITE_ONCE(v->sampling, on);
}

static enum hrtimer_restart on_timer(struct hrtimer *timer)
{
	struct cpu_samplers *c = container_of(timer, struct cpu_samplers, timer);

	if (!this_vcpu()->sampling)
		return HRTIMER_NORESTART;
	drain(c);
	hrtimer_forward_now(timer, ns_to_ktime(DRAIN_NS));
	return HRTIMER_RESTART;
}

/* The task that made the samples is still the current one. */
static void on_switch(void *data, bool preempt, struct task_struct *prev,
		      struct task_struct *next, unsigned int prev_state)
{
	if (this_vcpu()->sampling)
		drain(this_cpu_ptr(&samplers));
}

/* A CPU samples operations for one event at a time. */
static bool ops_are_sampled(const struct cpu_samplers *c)
{
	int i;

	for (i = 0; i < HOMENODE_SAMPLERS; i++)
		if (c->event[i] && homenode_kind_of(c->event[i])->ops)
			return true;
	return false;
}

int homenode_sampler_claim(struct perf_event *event)
{
	struct cpu_samplers *c = this_cpu_ptr(&samplers);
	int i;

	if (homenode_kind_of(event)->ops && ops_are_sampled(c))
		return -ENOSPC;
	for (i = 0; i < HOMENODE_SAMPLERS; i++) {
		if (c->event[i])
			continue;
		c->event[i] = event;
		event->hw.idx = i;
		return 0;
	}
	return -EAGAIN;
}

void homenode_sampler_release(struct perf_event *event)
{
	this_cpu_ptr(&samplers)->event[event->hw.idx] = NULL;
}

/* The event continues with what was left of the period when it stopped. false: it cannot start. */
bool homenode_sampler_start(struct perf_event *event)
{
	struct homenode_lab_sampler *s = sampler_of(event);
	struct hrtimer *timer = &this_cpu_ptr(&samplers)->timer;

	if (homenode_kind_of(event)->trace && !homenode_spe_begin(event))
		return false;
	s->filter = event->hw.config_base;
	s->period = is_sampling_event(event) ? event->hw.sample_period : 0;
	s->left = local64_read(&event->hw.period_left);
	if (s->left == 0 || s->left > s->period)
		s->left = s->period;
	if (s->period && !hrtimer_active(timer))
		hrtimer_start(timer, ns_to_ktime(DRAIN_NS), HRTIMER_MODE_REL_PINNED_HARD);
	this_vcpu()->sampling |= 1ULL << event->hw.idx;
	return true;
}

void homenode_sampler_stop(struct perf_event *event)
{
	this_vcpu()->sampling &= ~(1ULL << event->hw.idx);
	local64_set(&event->hw.period_left, sampler_of(event)->left);
	drain(this_cpu_ptr(&samplers));
	if (homenode_kind_of(event)->trace)
		homenode_spe_end();
}

#define NOT_OF_THE_ACCESS                                                           \
	(PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_BRANCH_STACK | PERF_SAMPLE_REGS_USER | \
	 PERF_SAMPLE_STACK_USER | PERF_SAMPLE_REGS_INTR | PERF_SAMPLE_AUX)

static u64 modes_of(const struct perf_event_attr *a)
{
	return (a->exclude_user ? 0 : HOMENODE_FILTER_USER) | (a->exclude_kernel ? 0 : HOMENODE_FILTER_KERNEL);
}

/* 0: the event only counts. */
static u64 filter_for(const struct homenode_kind *kind, struct perf_event *event, u8 *class)
{
	const struct perf_event_attr *a = &event->attr;
	u64 code = a->config & 0xffff;

	if (a->type != PERF_TYPE_RAW && a->type != event->pmu->type)
		return 0;
	if (kind->loads && code == kind->loads) {
		*class = kind->loads_class;
		return HOMENODE_FILTER_LOADS | modes_of(a) | (a->config1 & 0xffff);
	}
	if (kind->stores && code == kind->stores && is_sampling_event(event)) {
		*class = kind->stores_class;
		return HOMENODE_FILTER_STORES | modes_of(a);
	}
	return 0;
}

static bool has_auxiliary(const struct homenode_kind *kind, const struct perf_event *leader)
{
	const struct perf_event *sibling;

	if ((leader->attr.config & 0xffff) == kind->auxiliary)
		return true;
	for_each_sibling_event(sibling, leader) if ((sibling->attr.config & 0xffff) == kind->auxiliary) return true;
	return false;
}

/* As intel_pmu_hw_config() of arch/x86/events/intel/core.c, with PMU_FL_MEM_LOADS_AUX. */
static bool lacks_auxiliary(const struct homenode_kind *kind, const struct perf_event *event)
{
	return kind->auxiliary && (event->attr.sample_type & PERF_SAMPLE_DATA_SRC) &&
	       (event->attr.config & 0xffff) == kind->loads &&
	       (event->group_leader == event || !has_auxiliary(kind, event->group_leader));
}

/* As arm_spe_pmu_event_init() of drivers/perf/arm_spe_pmu.c: the buffer knows no rate. */
static int trace_event(struct perf_event *event)
{
	if (event->attr.freq)
		return -EINVAL;
	if (event->attr.exclude_idle || event->attr.config1 || event->attr.config2 > 0xfff)
		return -EOPNOTSUPP;
	event->hw.config_base = HOMENODE_FILTER_LOADS | HOMENODE_FILTER_STORES | modes_of(&event->attr);
	return 0;
}

/* As perf_ibs_init() of arch/x86/events/amd/ibs.c: the period is a multiple of 16, and given as
 * such. The lab's operations are its loads and stores: an instruction without any is none here. */
static int ops_event(const struct homenode_kind *kind, struct perf_event *event)
{
	if ((event->attr.config & ~kind->config_bits) || !is_sampling_event(event))
		return -EINVAL;
	if (kind->trace)
		return trace_event(event);
	if (!event->attr.freq && (event->hw.sample_period & 0xf))
		return -EINVAL;
	if (event->attr.freq || (event->attr.sample_type & NOT_OF_THE_ACCESS))
		return -EOPNOTSUPP; /* not in the lab */
	event->hw.config_base = HOMENODE_FILTER_LOADS | HOMENODE_FILTER_STORES | modes_of(&event->attr);
	return 0;
}

int homenode_sampling_event(struct perf_event *event, u8 *class)
{
	const struct homenode_kind *kind = homenode_kind_of(event);
	u64 filter;

	if (kind->ops)
		return ops_event(kind, event);
	filter = filter_for(kind, event, class);
	if (!filter)
		return -ENOENT;
	if (lacks_auxiliary(kind, event))
		return -ENODATA;
	/* Not precise: hardware has no address for it either. */
	if (is_sampling_event(event) &&
	    (!event->attr.precise_ip || (event->attr.sample_type & NOT_OF_THE_ACCESS)))
		return -EOPNOTSUPP;
	event->hw.config_base = filter;
	return 0;
}

static struct tracepoint *sched_switch;

static void find_sched_switch(struct tracepoint *tp, void *data)
{
	if (!strcmp(tp->name, "sched_switch"))
		sched_switch = tp;
}

static void prepare_timers(void)
{
	int cpu;

	for_each_possible_cpu(cpu) {
		struct hrtimer *timer = &per_cpu(samplers, cpu).timer;

		hrtimer_init(timer, CLOCK_MONOTONIC, HRTIMER_MODE_REL_PINNED_HARD);
		timer->function = on_timer;
	}
}

/* The tracepoint stays hooked: testing one word at each switch costs less than patching the
 * running scheduler for every event. */
int homenode_sampling_init(void)
{
	prepare_timers();
	log_lost = homenode_lookup("perf_log_lost_samples");
	for_each_kernel_tracepoint(find_sched_switch, NULL);
	if (!sched_switch) {
		pr_err("homenode_pmu: no tracepoint sched_switch: samples would be credited to the wrong tasks\n");
		return -ENOENT;
	}
	return tracepoint_probe_register(sched_switch, on_switch, NULL);
}

void homenode_sampling_exit(void)
{
	int cpu;

	tracepoint_probe_unregister(sched_switch, on_switch, NULL);
	tracepoint_synchronize_unregister();
	for_each_possible_cpu(cpu)
		hrtimer_cancel(&per_cpu(samplers, cpu).timer);
}
