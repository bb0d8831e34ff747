// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The memory model by itself, without QEMU: what must happen to single lines, and what must hold
 * after vCPUs have used the same lines from several threads.
 *
 * CPUs 0 and 1 are on node 0, 2 and 3 on node 1; with `smt` 0 and 1 are threads of a
 * core, 2 and 3 as well. All memory is node 0's unless a test says otherwise.
 */
#include "clock.h"
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define CPUS  4
#define NODE1 (2 * (768ull << 20)) /* plugin address of node 1's memory */
#define L1 (8u << 10)
#define L2 (64u << 10)
#define LOCAL_TRANSFER 130
#define REMOTE_TRANSFER 298

static struct homenode_lab_shared shared;
static struct homenode_model *const m = &homenode_model;
static int failures;

#define CHECK(what, got, want) check(__LINE__, what, (double)(got), (double)(want), 0)
#define NEAR(what, got, want, share) check(__LINE__, what, (double)(got), (double)(want), share)

static void check(int line, const char *what, double got, double want, double share)
{
	if (fabs(got - want) <= share * want)
		return;
	printf("model_test.c:%d: %s: got %g, want %g\n", line, what, got, want);
	failures++;
}

static void begin_with(bool smt, unsigned l1_bytes, unsigned l2_bytes)
{
	struct homenode_conf *c = &m->conf;

	for (int i = 0; i < CPUS; i++) {
		free(m->core[i].l2.tags);
		free(m->core[i].l2.vlines);
	}
	memset(m, 0, sizeof(*m));
	memset(&shared, 0, sizeof(shared));
	*c = (struct homenode_conf){
		.mhz = 50,
		.l1_bytes = l1_bytes,
		.l2_bytes = l2_bytes,
		.llc_bytes = 512 << 10,
		.l2_cycles = 12,
		.llc_cycles = 40,
		.stream_parallelism = 4,
		.mc_cycles = 19,
		.link_cycles = 57,
		.atomic_cycles = 18,
		.coherence = 1,
		.ncpu = CPUS,
		.nnode = 2,
		.nlink = 2,
	};
	for (int i = 0; i < CPUS; i++) {
		c->cpu_node[i] = i / 2;
		c->cpu_core[i] = (unsigned)(smt ? i / 2 : i);
	}
	for (int i = 0; i < 2; i++) {
		c->node_bytes[i] = 768ull << 20;
		for (int j = 0; j < 2; j++) {
			c->lat[i][j] = i == j ? 216 : 373;
			c->transfer[i][j] = i == j ? LOCAL_TRANSFER : REMOTE_TRANSFER;
		}
	}
	c->path_len[0][1] = c->path_len[1][0] = 1;
	c->path[1][0][0] = 1; /* the path of the data from node 0's memory to node 1 */
	if (homenode_model_init(m, &shared)) {
		puts("model_test: no memory");
		exit(1);
	}
}

static void begin(bool smt)
{
	begin_with(smt, L1, L2);
}

/* Does what plugin.c does. vline: the program's virtual line; line: the physical one. */
static unsigned go(unsigned cpu, uint64_t vline, uint64_t phys, enum homenode_how how)
{
	struct homenode_vcpu *v = &m->vcpu[cpu];
	uint64_t slot = v->l1[vline & m->l1_mask], before = v->clock;

	if (how == HOMENODE_LOAD ? (slot | HOMENODE_L1_WRITE) == ((vline + 1) | HOMENODE_L1_WRITE) : slot == ((vline + 1) | HOMENODE_L1_WRITE))
		return 0;
	homenode_model_access(m, v, vline, phys, how);
	return (unsigned)(v->clock - before);
}

static unsigned at(unsigned cpu, uint64_t line, enum homenode_how how)
{
	return go(cpu, 1 << 20 | line, line << HOMENODE_LINE_SHIFT, how);
}

static uint64_t count(unsigned cpu, unsigned counter)
{
	return shared.vcpu[cpu].counter[HOMENODE_KERNEL][counter];
}

static uint64_t all(unsigned counter)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < CPUS; i++)
		sum += count(i, counter);
	return sum;
}

static void single_line(void)
{
	begin(false);
	CHECK("first load: DRAM", at(0, 5, HOMENODE_LOAD), 216);
	CHECK("again: L1", at(0, 5, HOMENODE_LOAD), 0);
	CHECK("a store to what it has alone costs nothing", at(0, 5, HOMENODE_STORE), 0);
	CHECK("what another core modified comes from there", at(1, 5, HOMENODE_LOAD), LOCAL_TRANSFER);
	CHECK("transfers", count(1, HOMENODE_TRANSFERS_LOCAL), 1);
	CHECK("an atomic on what both have: ownership, all of it", at(0, 5, HOMENODE_ATOMIC), LOCAL_TRANSFER);
	CHECK("upgrades", count(0, HOMENODE_UPGRADES), 1);
	CHECK("copies taken away", count(0, HOMENODE_INVALIDATIONS), 1);
	CHECK("from the other node", at(2, 5, HOMENODE_LOAD), REMOTE_TRANSFER);
	CHECK("written back at once", count(2, HOMENODE_WRITEBACKS), 1);
	CHECK("by the way from its owner's node", shared.vcpu[0].writeback[0], 1);
	CHECK("no cache lost it", at(0, 5, HOMENODE_LOAD), 0);
	CHECK("a store exposes a quarter", at(2, 5, HOMENODE_STORE), REMOTE_TRANSFER / 4);
	CHECK("requests", all(HOMENODE_UNCORE_REQUESTS), 5);
	CHECK("their latency", all(HOMENODE_UNCORE_OUTSTANDING), 216 + 2 * LOCAL_TRANSFER + 2 * REMOTE_TRANSFER);
}

/* Caches that were emptied have no line, owe none to memory, and no other core waits for one. */
static void emptied(void)
{
	begin(false);
	shared.qos = 1;
	homenode_qos_enter(m);
	for (unsigned i = 0; i < 3 * (512 << 10) / 64; i++)
		at(0, i, i % 2 ? HOMENODE_STORE : HOMENODE_LOAD);
	at(0, 5, HOMENODE_STORE);
	uint64_t written = all(HOMENODE_WRITEBACKS);
	homenode_model_empty_caches(m);
	CHECK("an RMID's lines", shared.held[0][0], 0);
	CHECK("what another core had modified", at(1, 5, HOMENODE_LOAD), 216);
	CHECK("what the core itself had", at(0, 7, HOMENODE_LOAD), 216);
	for (unsigned i = 1 << 16; i < (1 << 16) + (256 << 10) / 64; i++)
		at(0, i, HOMENODE_LOAD);
	CHECK("written back", all(HOMENODE_WRITEBACKS), written);
	CHECK("an RMID's lines again", shared.held[0][0], 2 + (256 << 10) / 64);
}

/* Two nodes take turns to load and store data that fits an LLC but no L2. Each line comes from
 * the other's cache or from memory, never from an old copy in the own LLC. */
static void no_stale_copies(void)
{
	const uint64_t lines = 4096;

	begin(false);
	for (int lap = 0; lap < 4; lap++)
		for (unsigned cpu = 0; cpu <= 2; cpu += 2) {
			uint64_t moved = all(HOMENODE_TRANSFERS_REMOTE) + all(HOMENODE_LLC_MISSES);

			for (uint64_t i = 0; i < lines; i++) {
				at(cpu, i * 7 % lines, HOMENODE_LOAD);
				at(cpu, i * 7 % lines, HOMENODE_STORE);
			}
			CHECK("lines that came", all(HOMENODE_TRANSFERS_REMOTE) + all(HOMENODE_LLC_MISSES) - moved, lines);
		}
}

/* One line at two virtual addresses of a CPU is lost at both. */
static void aliases(void)
{
	begin(false);
	for (int i = 0; i < 1000; i++) {
		go(0, 100, 640, HOMENODE_STORE);
		go(0, 9100, 640, HOMENODE_LOAD);
		go(1, 100, 640, HOMENODE_STORE);
	}
	CHECK("transfers back and forth", all(HOMENODE_TRANSFERS_LOCAL), 1999);
}

static void siblings(void)
{
	begin(true);
	at(0, 5, HOMENODE_STORE);
	CHECK("a sibling's store: its own L1 misses, their L2 has it", at(1, 5, HOMENODE_STORE), 12);
	CHECK("transfers", all(HOMENODE_TRANSFERS_LOCAL), 0);
	CHECK("the other core's", at(2, 5, HOMENODE_LOAD), REMOTE_TRANSFER);
}

/* 1.0 instructions a cycle for a core, shared as long as both run. */
static void issue(void)
{
	begin(true);
	for (int halted = 0; halted <= 1; halted++) {
		uint64_t start = m->vcpu[0].clock, n = 0;

		shared.vcpu[0].running = 1;
		for (; n < 2000000; n += 100) {
			shared.vcpu[1].running = !halted;
			m->vcpu[0].clock += homenode_smt_issue(&m->vcpu[0], 100);
			if (!halted)
				m->vcpu[1].clock += homenode_smt_issue(&m->vcpu[1], 100);
		}
		NEAR("cycles an instruction", (double)(m->vcpu[0].clock - start) / (double)n, halted ? 1 : 2, 0.01);
	}
}

/* Readers that request the next line when one arrives, with `width` in flight. Light load waits
 * as M/D/1 says; heavy load gets 98 % of the capacity. */
static double closed_loop(unsigned width, double *latency)
{
	const uint64_t round = 25000;
	double asked = 0, lines = 0;

	begin(false);
	for (int i = 0; i < 4000; i++) {
		double now = (double)round * width / m->lat_now[0][0];

		asked += now;
		shared.vcpu[0].dram[0] = (uint64_t)asked;
		homenode_model_queues(m, round);
		if (i >= 2000)
			lines += now;
	}
	*latency = m->lat_now[0][0];
	return lines * m->conf.mc_cycles / (2000.0 * (double)round);
}

static void queues(void)
{
	double latency;
	double load = closed_loop(4, &latency);

	NEAR("light load: latency", latency, 216 + 19 * load / (2 * (1 - load)), 0.01);
	NEAR("light load", load, 4 * 19 / latency, 0.01);
	NEAR("heavy load", closed_loop(100, &latency), 0.98, 0.01);
	NEAR("its latency is what the readers' number makes it", latency, 100 * 19 / 0.98, 0.02);
}

/* Classes: what is held, what is moved, which ways are filled, how fast lines are requested. */
static void classes(void)
{
	const uint64_t llc = (512 << 10) >> HOMENODE_LINE_SHIFT, far = NODE1 >> HOMENODE_LINE_SHIFT;

	begin(false);
	for (uint64_t i = 0; i < 100; i++)
		at(0, i, HOMENODE_LOAD);
	shared.qos = 1;
	homenode_qos_enter(m);
	CHECK("in force", shared.qos_applied, 1);
	CHECK("what was there is RMID 0's", shared.held[0][0], 100);
	CHECK("nothing is counted before", shared.traffic[0][0].total, 0);

	shared.vcpu[0].pqr = HOMENODE_PQR(1, 7);
	shared.vcpu[1].pqr = HOMENODE_PQR(2, 9);
	for (uint64_t i = 0; i < llc; i++)
		at(0, 1000 + i, HOMENODE_LOAD);
	NEAR("a lap over as much as the LLC", shared.held[0][7], llc, 0.05);
	CHECK("lines read", shared.traffic[0][7].total, llc);
	CHECK("of its node", shared.traffic[0][7].local, llc);

	shared.ways[2][0] = 0xf000; /* 4 of 16 */
	for (uint64_t i = 0; i < 3 * llc; i++)
		at(1, far + i, HOMENODE_STORE);
	CHECK("a class fills its ways only", shared.held[0][9], llc / 4);
	NEAR("three quarters stay", shared.held[0][7], 3 * llc / 4, 0.05);
	CHECK("none is local", shared.traffic[1][9].local, 0);
	CHECK("reads, and what was written back", shared.traffic[1][9].total, 3 * llc + shared.vcpu[1].writeback[1]);
	CHECK("most of it was", shared.vcpu[1].writeback[1] > 2 * llc, 1);
	CHECK("the other's lines were clean", shared.traffic[1][7].total, 0);

	for (unsigned percent = 10; percent <= 100; percent += 30) {
		uint64_t start = m->vcpu[0].clock;

		shared.throttle[1][0] = percent;
		for (uint64_t i = 0; i < 2000; i++)
			at(0, (percent + 100) * 10000 + i, HOMENODE_LOAD);
		NEAR("cycles a line of a stream", (double)(m->vcpu[0].clock - start) / 2000,
		     percent > 70 ? 216 / 4 : 40 * 100 / percent, 0.05);
	}
	shared.qos = 0;
	homenode_qos_enter(m);
	uint64_t start = m->vcpu[0].clock;
	at(0, 9 << 20, HOMENODE_LOAD);
	CHECK("off, nothing waits", m->vcpu[0].clock - start, 216);
	CHECK("off", shared.qos_applied, 0);
}

#define STRESSED 50 /* lines that all vCPUs use */
#define OWN      (1 << 14)
#define ROUND    500 /* accesses: more than L1 has lines, so that an audit sees the effects of a race */
#define ROUNDS   2000

static pthread_barrier_t barrier;

static void stress_round(unsigned cpu, uint64_t *r)
{
	for (int i = 0; i < ROUND; i++) {
		uint64_t pick = homenode_random(r) >> 20;

		if (*r & 4)
			at(cpu, pick % STRESSED, *r & 3 ? HOMENODE_LOAD : HOMENODE_STORE);
		else
			at(cpu, (cpu + 1) * OWN * 4 + pick % OWN, *r & 16 ? HOMENODE_LOAD : HOMENODE_STORE);
		m->vcpu[cpu].clock += 3;
	}
}

static void *stress(void *arg)
{
	unsigned cpu = (unsigned)(uintptr_t)arg;
	uint64_t r = 0x9e3779b97f4a7c15ULL * (cpu + 1);

	for (int i = 0; i < ROUNDS; i++) {
		pthread_barrier_wait(&barrier);
		stress_round(cpu, &r);
		pthread_barrier_wait(&barrier);
	}
	return NULL;
}

/* Lines that L1 may serve alone are in L2, and no other core has a line that a core has
 * modified. */
static void audit_l1(unsigned cpu)
{
	const struct homenode_vcpu *v = &m->vcpu[cpu];

	for (uint64_t i = 0; i <= m->l1_mask; i++) {
		uint64_t slot = v->l1[i];

		if (!slot)
			continue;
		uint64_t line = ((slot & HOMENODE_L1_LINE) - 1) & ~(1ULL << 20);
		CHECK("what is in L1 is in L2", homenode_cache_find(&v->core->l2, line) >= 0, 1);
		if (slot & HOMENODE_L1_WRITE)
			CHECK("no other core has what L1 may write", m->directory[0][line].sharers, 1ULL << v->core_id);
	}
}

static void audit_l2(unsigned core)
{
	const struct homenode_cache *l2 = &m->core[core].l2;

	for (uint64_t i = 0; i < (l2->set_mask + 1) * l2->ways; i++) {
		uint64_t tag = l2->tags[i] & HOMENODE_TAG;

		if (!l2->tags[i])
			continue;
		CHECK("a tag has a line", tag != 0, 1);
		CHECK("a line is there once", homenode_cache_find(l2, tag - 1), i);
		CHECK("the directory knows", m->directory[0][tag - 1].sharers >> core & 1, 1);
	}
}

static void audit(bool smt)
{
	for (unsigned i = 0; i < CPUS; i++)
		audit_l1(i);
	for (unsigned i = 0; i < (smt ? CPUS / 2 : CPUS); i++)
		audit_l2(i);
}

/* A line belongs to one RMID, and counts once. */
static void audit_qos(void)
{
	uint64_t total = 0, local = 0, lines = 0, own = 0;

	for (unsigned n = 0; n < 2; n++) {
		uint64_t found[256] = { 0 };

		for (uint64_t i = 0; i < (m->llc[n].set_mask + 1) * m->llc[n].ways; i++)
			found[m->llc[n].owners[i]]++;
		for (unsigned r = 0; r < HOMENODE_MAX_RMIDS; r++)
			CHECK("what an RMID holds", shared.held[n][r], found[r]);
	}
	for (unsigned cpu = 0; cpu < CPUS; cpu++) {
		const struct homenode_lab_vcpu *v = &shared.vcpu[cpu];

		for (unsigned r = 0; r < HOMENODE_MAX_RMIDS; r++) {
			total += shared.traffic[cpu][r].total;
			local += shared.traffic[cpu][r].local;
		}
		for (int n = 0; n < 2; n++)
			lines += v->dram[n] + v->writeback[n];
		own += v->dram[cpu / 2] + v->writeback[cpu / 2];
	}
	CHECK("lines by RMID are those by vCPU", total, lines);
	CHECK("also those of the own node", local, own);
}

static void threads(bool smt, unsigned l1_bytes, unsigned l2_bytes)
{
	pthread_t thread[CPUS];

	begin_with(smt, l1_bytes, l2_bytes);
	shared.qos = smt;
	homenode_qos_enter(m);
	for (unsigned i = 0; i < CPUS; i++)
		shared.vcpu[i].pqr = HOMENODE_PQR(i, 2 * i);
	shared.ways[1][0] = 0xff00;
	shared.throttle[2][1] = 50;
	pthread_barrier_init(&barrier, NULL, CPUS + 1);
	for (uintptr_t i = 0; i < CPUS; i++)
		pthread_create(&thread[i], NULL, stress, (void *)i);
	for (int i = 0; i < ROUNDS; i++) {
		pthread_barrier_wait(&barrier);
		pthread_barrier_wait(&barrier);
		/* no thread goes on before the next wait */
		audit(smt);
	}
	for (int i = 0; i < CPUS; i++)
		pthread_join(thread[i], NULL);
	if (smt)
		audit_qos();
	CHECK("lines went back and forth", all(HOMENODE_TRANSFERS_REMOTE) >= STRESSED, 1);
}

/* QEMU 7.2 reports sums of two offsets, QEMU 10 the guest's addresses. */
static void addresses(void)
{
	static struct homenode_model guest;
	const uint64_t node = 768ull << 20;

	begin(false);
	CHECK("7.2: the last line of node 0", homenode_home(m, node - 64), 0);
	CHECK("7.2: between the nodes", homenode_home(m, node), -1);
	CHECK("7.2: the first line of node 1", homenode_home(m, 2 * node), 1);
	guest.conf = m->conf;
	guest.conf.guest_addresses = true;
	CHECK("model", homenode_model_init(&guest, &shared), 0);
	CHECK("10: the last line of node 0", homenode_home(&guest, node - 64), 0);
	CHECK("10: the first line of node 1", homenode_home(&guest, node), 1);
	CHECK("10: the last line of node 1", homenode_home(&guest, 2 * node - 64), 1);
	CHECK("10: behind all memory", homenode_home(&guest, 2 * node), -1);
}

int main(void)
{
	addresses();
	single_line();
	emptied();
	no_stale_copies();
	aliases();
	siblings();
	issue();
	queues();
	classes();
	threads(false, L1, L2);
	threads(true, L1, L2);
	threads(false, L1 / 8, L2 / 64); /* next to no room: lines are replaced all the time */
	threads(true, L1 / 8, L2 / 64);
	printf("model_test: %s\n", failures ? "FAILED" : "ok");
	return failures != 0;
}
