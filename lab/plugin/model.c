// SPDX-License-Identifier: GPL-2.0-or-later
#include "model.h"
#include <string.h>

struct homenode_model homenode_model;

static int init_nodes(struct homenode_model *m)
{
	const struct homenode_conf *c = &m->conf;
	uint64_t sum = 0;

	for (unsigned n = 0; n < c->nnode; n++) {
		/* QEMU 7.2 reports RAM block offset + offset + the offset of the
		 * backend in the machine's RAM container: with the node backends
		 * created first and in order, both offsets are the sum of the
		 * sizes before.  QEMU 10 reports the guest's address.  The guest
		 * checks this at start (touch). */
		m->range[n].base = c->guest_addresses ? sum : 2 * sum;
		m->range[n].end = m->range[n].base + c->node_bytes[n];
		sum += c->node_bytes[n];
		if (homenode_cache_init(&m->llc[n], c->llc_bytes, HOMENODE_LLC_WAYS, false))
			return -1;
	}
	return 0;
}

static int init_cpu(struct homenode_model *m, unsigned cpu)
{
	const struct homenode_conf *c = &m->conf;
	struct homenode_vcpu *v = &m->vcpu[cpu];
	struct homenode_core *core = &m->core[c->cpu_core[cpu]];

	v->pub = &m->shared->vcpu[cpu];
	v->ring = m->shared->ring[cpu];
	v->ctr = v->pub->counter[HOMENODE_KERNEL];
	v->node = c->cpu_node[cpu];
	v->core_id = c->cpu_core[cpu];
	v->core = core;
	v->fast = c->cpu_fast[cpu];
	v->issue_cost = 256;
	v->random = 0x9e3779b97f4a7c15ULL * (cpu + 1);
	core->node = v->node;
	core->cpu[core->ncpu++] = cpu;
	if (core->ncpu == 1)
		return homenode_cache_init(&core->l2, c->l2_bytes, HOMENODE_L2_WAYS, true);
	v->sibling = &m->vcpu[core->cpu[0]];
	v->sibling->sibling = v;
	m->smt = true;
	return 0;
}

int homenode_model_init(struct homenode_model *m, struct homenode_lab_shared *s)
{
	const struct homenode_conf *c = &m->conf;

	m->shared = s;
	s->llc_ways = HOMENODE_LLC_WAYS;
	m->l1_mask = (c->l1_bytes >> HOMENODE_LINE_SHIFT) - 1;
	if (init_nodes(m) || homenode_directory_init(m))
		return -1;
	for (unsigned i = 0; i < c->ncpu; i++)
		if (init_cpu(m, i))
			return -1;
	memcpy(m->lat_now, c->lat, sizeof(c->lat));
	return 0;
}

/* The directory forgets which lines the core had modified. Of clean lines it only says which cores
 * may have them, so these entries stay. */
static void empty_core(struct homenode_model *m, struct homenode_core *core)
{
	struct homenode_cache *l2 = &core->l2;
	struct homenode_vcpu *v = &m->vcpu[core->cpu[0]];

	for (unsigned i = 0; i < core->ncpu; i++)
		homenode_model_flush_l1(m, &m->vcpu[core->cpu[i]]);
	for (uint64_t at = 0; at < (l2->set_mask + 1) * l2->ways; at++) {
		uint64_t tag = __atomic_exchange_n(&l2->tags[at], 0, __ATOMIC_RELAXED);

		if (tag & HOMENODE_DIRTY)
			homenode_directory_leave(m, v, (tag & HOMENODE_TAG) - 1);
	}
	homenode_cache_empty(l2);
}

void homenode_model_empty_caches(struct homenode_model *m)
{
	for (unsigned i = 0; i < m->conf.ncpu; i++)
		if (m->core[i].ncpu)
			empty_core(m, &m->core[i]);
	for (unsigned n = 0; n < m->conf.nnode; n++) {
		struct homenode_cache *llc = &m->llc[n];

		for (uint64_t at = 0; homenode_qos(m) && at < (llc->set_mask + 1) * llc->ways; at++)
			homenode_qos_drop(m, n, at);
		homenode_cache_empty(llc);
	}
}

/* Is this L1 miss the next line of a sequential run of at least three? */
static bool stream_follow(struct homenode_vcpu *v, uint64_t line)
{
	for (unsigned i = 0; i < HOMENODE_STREAMS; i++) {
		if (v->stream[i] + 1 != line)
			continue;
		v->stream[i] = line;
		if (v->stream_run[i] < 255)
			v->stream_run[i]++;
		return v->stream_run[i] >= 2;
	}
	/* start a new run; a run that has grown since the last round gets another chance */
	unsigned i = v->stream_next++ % HOMENODE_STREAMS;
	for (unsigned tries = 1; v->stream_run[i] >= 2 && tries < HOMENODE_STREAMS; tries++) {
		v->stream_run[i] = 1;
		i = v->stream_next++ % HOMENODE_STREAMS;
	}
	v->stream[i] = line;
	v->stream_run[i] = 0;
	return false;
}

/* One access on its way. */
struct access {
	struct homenode_model *m;
	struct homenode_vcpu *v;
	uint64_t vline, line, phys;
	int home;
	bool write;
	unsigned overlap; /* 1/overlap of the latency of DRAM and other cores is exposed */
};

/* A line goes to its memory from the caches of cpu's node, so that node's links carry it. The
 * access of v evicted it. rmid: whose line it was. */
static void write_back(struct homenode_model *m, struct homenode_vcpu *v, unsigned cpu, uint64_t line, unsigned rmid)
{
	int home = homenode_home(m, line << HOMENODE_LINE_SHIFT);

	if (home < 0)
		return;
	__atomic_fetch_add(&m->shared->vcpu[cpu].writeback[home], 1, __ATOMIC_RELAXED);
	if (homenode_qos(m))
		homenode_qos_line(m, cpu, home, rmid);
	v->ctr[HOMENODE_WRITEBACKS]++;
}

static unsigned cpu_of(const struct homenode_model *m, const struct homenode_vcpu *v)
{
	return (unsigned)(v - m->vcpu);
}

/* Inserts a line into the LLC of the vCPU's node. It must not be there. */
static inline __attribute__((always_inline)) void llc_put(struct homenode_model *m, struct homenode_vcpu *v, uint64_t line, uint64_t dirty)
{
	struct homenode_victim gone = homenode_qos(m) ? homenode_qos_put(m, v, line, dirty) : homenode_cache_put(&m->llc[v->node], line, 0, dirty, &v->random);

	if (gone.tag & HOMENODE_DIRTY)
		write_back(m, v, cpu_of(m, v), (gone.tag & HOMENODE_TAG) - 1, gone.owner);
}

/* The same, but the line may be there. */
static void llc_take(struct homenode_model *m, struct homenode_vcpu *v, uint64_t line, uint64_t dirty)
{
	struct homenode_cache *llc = &m->llc[v->node];
	int64_t at = homenode_cache_find(llc, line);

	if (at < 0)
		llc_put(m, v, line, dirty);
	else if (dirty)
		homenode_cache_set(llc, (uint64_t)at, line, (line + 1) | dirty);
}

/* The core's L2 gets the line and its virtual line in L1. An alias replaces the virtual line
 * before it. Returns the line that was replaced. */
static struct homenode_victim l2_take(struct access *a)
{
	struct homenode_cache *l2 = &a->v->core->l2;
	uint64_t dirty = a->write ? HOMENODE_DIRTY : 0;
	int64_t at = homenode_cache_find(l2, a->line);

	if (at >= 0 && l2->vlines[at] != a->vline) {
		homenode_l1_drop(a->m, a->v->core, l2->vlines[at]);
		l2->vlines[at] = a->vline;
	}
	if (at < 0)
		return homenode_cache_put(l2, a->line, a->vline, dirty, &a->v->random);
	if (dirty)
		homenode_cache_set(l2, (uint64_t)at, a->line, (a->line + 1) | dirty);
	return (struct homenode_victim){ 0 };
}

/* L1 and L2 take the line. A line replaced in L2 leaves L1, too. */
static struct homenode_victim private_take(struct access *a, uint64_t rights)
{
	homenode_core_lock(a->v->core);
	struct homenode_victim gone = l2_take(a);
	if (gone.tag & HOMENODE_TAG)
		homenode_l1_drop(a->m, a->v->core, gone.vline);
	__atomic_store_n(&a->v->l1[a->vline & a->m->l1_mask], (a->vline + 1) | rights, __ATOMIC_RELAXED);
	homenode_core_unlock(a->v->core);
	return gone;
}

/* A modified line that L2 replaced goes to the LLC of the node, unless another core took it
 * meanwhile. */
static void l2_evict(struct access *a, struct homenode_victim gone)
{
	uint64_t line = (gone.tag & HOMENODE_TAG) - 1;

	if (gone.tag & HOMENODE_DIRTY && homenode_directory_leave(a->m, a->v, line))
		llc_take(a->m, a->v, line, HOMENODE_DIRTY);
}

/* A request that leaves the private caches: the cycles that it exposes, and its part of the
 * uncore penalty's terms. Critical cycles are the exposed ones: with n requests in flight all the
 * time, each adds an n-th of its latency. */
static unsigned request(struct access *a, unsigned where, unsigned latency, unsigned exposed)
{
	uint64_t *ctr = a->v->ctr;
	unsigned wait = homenode_qos(a->m) ? homenode_qos_wait(a->m, a->v) : 0;

	latency += wait;
	exposed += wait;
	ctr[HOMENODE_UNCORE_REQUESTS]++;
	ctr[HOMENODE_UNCORE_OUTSTANDING] += latency;
	ctr[HOMENODE_UNCORE_CRITICAL] += exposed;
	a->v->access = HOMENODE_ACCESS(where, a->home < 0 ? 0xff : (unsigned)a->home, latency);
	return exposed;
}

/* From the LLC of the vCPU's node, else from DRAM at the page's home node: the pair's idle
 * latency plus queueing at the controller and on every link of the path. `least`: how long
 * removing the copies takes. */
static unsigned fetch(struct access *a, unsigned least)
{
	struct homenode_model *m = a->m;
	struct homenode_vcpu *v = a->v;
	unsigned lat = m->conf.llc_cycles, where = HOMENODE_HIT_LLC;
	bool hit = homenode_cache_find(&m->llc[v->node], a->line) >= 0;

	if (!hit) {
		bool remote = a->home != v->node;

		v->ctr[HOMENODE_LLC_MISSES]++;
		v->ctr[HOMENODE_LOCAL_LOADS + remote + 2 * a->write]++;
		v->pub->dram[a->home]++;
		if (homenode_qos(m))
			homenode_qos_line(m, cpu_of(m, v), a->home, HOMENODE_PQR_RMID(v->pub->pqr));
		lat = __atomic_load_n(&m->lat_now[v->node][a->home], __ATOMIC_RELAXED);
		where = remote ? HOMENODE_HIT_REMOTE : HOMENODE_HIT_LOCAL;
		llc_put(m, v, a->line, 0);
	}
	lat = lat > least ? lat : least;
	return request(a, where, lat, hit && !least ? lat : lat / a->overlap);
}

/* From the private cache of the core that modified it. A read makes it clean: in the node's LLC
 * or, across nodes, in memory. */
static unsigned from_peer(struct access *a, const struct homenode_claim *c)
{
	struct homenode_vcpu *v = a->v;
	const struct homenode_core *owner = &a->m->core[c->from];
	bool remote = owner->node != v->node;
	unsigned lat = c->latency + c->wait;

	v->ctr[HOMENODE_TRANSFERS_LOCAL + remote]++;
	v->pub->transfer[owner->node]++;
	if (!a->write) {
		llc_take(a->m, v, a->line, remote ? 0 : HOMENODE_DIRTY);
		if (remote)
			write_back(a->m, v, owner->cpu[0], a->line, HOMENODE_PQR_RMID(a->m->shared->vcpu[owner->cpu[0]].pqr));
	}
	return request(a, remote ? HOMENODE_HIT_PEER_REMOTE : HOMENODE_HIT_PEER_LOCAL, lat, lat / a->overlap);
}

/* Asks the directory and puts the line into the private caches. Both happen while its entry is
 * locked, so that a core that takes the line away finds it. */
static struct homenode_claim claim(struct access *a)
{
	struct homenode_vcpu *v = a->v;
	struct homenode_claim c = { .kind = HOMENODE_OWN };

	if (a->m->conf.coherence && a->home >= 0)
		c = homenode_directory_claim(a->m, v, a->phys, a->home, a->write);
	else if (homenode_cache_find(&v->core->l2, a->line) < 0)
		c.kind = HOMENODE_FETCH;
	struct homenode_victim gone =
		private_take(a, c.contended ? HOMENODE_L1_ASK : (a->write || a->home < 0 ? HOMENODE_L1_WRITE : 0));
	homenode_directory_done(&c);
	l2_evict(a, gone);
	return c;
}

/* Cycles that an access exposes beyond L1. Counts them too. */
static unsigned memory_access(struct access *a, bool in_l1)
{
	struct homenode_vcpu *v = a->v;
	const struct homenode_conf *conf = &a->m->conf;
	struct homenode_claim c = claim(a);

	if (c.kind == HOMENODE_FETCH || c.kind == HOMENODE_PEER)
		v->ctr[HOMENODE_L2_MISSES]++;
	switch (c.kind) {
	case HOMENODE_UPGRADE:
		v->ctr[HOMENODE_UPGRADES]++;
		return request(a, HOMENODE_HIT_UPGRADE, c.latency + c.wait, (c.latency + c.wait) / a->overlap);
	case HOMENODE_PEER:
		return from_peer(a, &c);
	case HOMENODE_FETCH:
		if (a->home >= 0)
			return fetch(a, c.latency + c.wait);
		v->ctr[HOMENODE_UNMAPPED]++;
		return request(a, HOMENODE_HIT_UNKNOWN, conf->llc_cycles, conf->llc_cycles);
	default:
		v->access = HOMENODE_ACCESS(in_l1 ? HOMENODE_HIT_L1 : HOMENODE_HIT_L2, 0xff,
					    in_l1 ? HOMENODE_L1_LATENCY : conf->l2_cycles);
		return in_l1 ? 0 : conf->l2_cycles;
	}
}

/* 1. The private caches, then where the directory says: the LLC of the vCPU's node,
 *    DRAM, or another core's cache.
 * 2. Misses of a sequential stream, and stores (which wait in the store buffer),
 *    overlap: only 1/parallelism of the latency is exposed. A locked access waits
 *    for all of it.
 * 3. L1 takes the line. If it is modified and not shared, later stores hit in L1. If it is
 *    contended, later accesses come here again. */
void homenode_model_access(struct homenode_model *m, struct homenode_vcpu *v,
			   uint64_t vline, uint64_t phys, enum homenode_how how)
{
	bool in_l1 = (v->l1[vline & m->l1_mask] & HOMENODE_L1_LINE) == vline + 1, stream = false;
	struct access a = {
		.m = m,
		.v = v,
		.vline = vline,
		.line = phys >> HOMENODE_LINE_SHIFT,
		.phys = phys,
		.home = homenode_home(m, phys),
		.write = how != HOMENODE_LOAD,
		.overlap = 1,
	};

	if (!in_l1) {
		v->ctr[HOMENODE_L1_MISSES]++;
		stream = stream_follow(v, vline);
	}
	if (how == HOMENODE_STORE || (stream && how == HOMENODE_LOAD))
		a.overlap = m->conf.stream_parallelism;
	unsigned stall = memory_access(&a, in_l1);

	v->ctr[HOMENODE_STALL_CYCLES] += stall;
	v->ctr[HOMENODE_CYCLES] += stall;
	homenode_pass(v, stall);
}
