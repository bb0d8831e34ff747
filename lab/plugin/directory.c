// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The directory: for every line of memory, which cores may have it, and whether one core has it
 * alone. It keeps private caches coherent as MESI does, and reports the cost.
 *
 * 1. A read of a line that another core modified takes it from there. Then both share it, and it
 *    is clean.
 * 2. A write removes all other copies. If the core holds the line shared, this is an upgrade;
 *    otherwise the data comes with it. Copies are removed in parallel: the farthest one counts.
 * 3. A core that takes a line from others waits until the previous transfer is over: a line goes
 *    from one core to the next, not to two at once.
 * 4. From then on the line is contended: every user-mode access to it asks here, after all vCPUs
 *    that share lines have reached the same model time (homenode_clock_order), so that the host
 *    does not decide which vCPU comes first. After
 *    QUIET cycles without a transfer it is an ordinary line again.
 *
 * Kernel mode takes part, but does not wait: the guest's spinlocks order its accesses. OFF, no
 * access comes here.
 *
 * Each entry has a lock of its own, held while its line is put into caches or taken out of them.
 * No thread holds two. A core's lock is taken while one of these is held, or none.
 */
#define _GNU_SOURCE
#include "clock.h"
#include <sched.h>
#include <sys/mman.h>

#define LOCK      (1ULL << 16)
#define MODIFIED  (1ULL << 17) /* sharers has one core, which has the only valid copy */
#define EXCLUSIVE (1ULL << 18) /* sharers has one core, memory is valid */
#define CONTENDED (1ULL << 19)
#define STATES    (MODIFIED | EXCLUSIVE)
#define LLC(node) (1ULL << (node)) /* bits 0-15 */
#define NODES     (LLC(HOMENODE_MAX_NODES) - 1)
#define FREE_SHIFT 24 /* bits 24-63: model clock at which its last transfer ends, modulo 2^40 */
#define BEFORE_FREE ((1ULL << FREE_SHIFT) - 1)

#define QUIET 150000LL /* cycles, fifteen times the vCPUs' skew */
#define WAIT_MOST 100000LL /* cycles; a longer wait comes from a vCPU's clock, not from a queue */
#define PATIENCE 200 /* checks of a lock before yielding the host's CPU to its holder */

int homenode_directory_init(struct homenode_model *m)
{
	for (unsigned n = 0; n < m->conf.nnode && m->conf.coherence; n++) {
		size_t bytes = (m->conf.node_bytes[n] >> HOMENODE_LINE_SHIFT) * sizeof(struct homenode_line);
		void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

		if (p == MAP_FAILED)
			return -1;
		madvise(p, bytes, MADV_HUGEPAGE);
		m->directory[n] = p;
	}
	return 0;
}

static struct homenode_line *entry_of(struct homenode_model *m, int home, uint64_t phys)
{
	return &m->directory[home][(phys - m->range[home].base) >> HOMENODE_LINE_SHIFT];
}

static uint64_t lock(struct homenode_line *e)
{
	for (unsigned tries = 1;; tries++) {
		uint64_t word = __atomic_load_n(&e->word, __ATOMIC_RELAXED);

		if (!(word & LOCK) && __atomic_compare_exchange_n(&e->word, &word, word | LOCK, true,
								  __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
			return word;
		if (tries % PATIENCE == 0)
			sched_yield();
	}
}

static void unlock(struct homenode_line *e, uint64_t word)
{
	__atomic_store_n(&e->word, word & ~LOCK, __ATOMIC_RELEASE);
}

void homenode_core_lock(struct homenode_core *core)
{
	for (unsigned tries = 1; __atomic_exchange_n(&core->lock, 1, __ATOMIC_ACQUIRE); tries++)
		if (tries % PATIENCE == 0)
			sched_yield();
}

void homenode_core_unlock(struct homenode_core *core)
{
	__atomic_store_n(&core->lock, 0, __ATOMIC_RELEASE);
}

/* By compare-and-swap: a vCPU empties its own L1 without the core's lock. */
static void l1_change(struct homenode_model *m, const struct homenode_core *core, uint64_t vline, uint64_t to)
{
	for (unsigned i = 0; i < core->ncpu; i++) {
		uint64_t *slot = &m->vcpu[core->cpu[i]].l1[vline & m->l1_mask];
		uint64_t is = __atomic_load_n(slot, __ATOMIC_RELAXED);

		if ((is & HOMENODE_L1_LINE) == vline + 1)
			__atomic_compare_exchange_n(slot, &is, to, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
	}
}

void homenode_l1_drop(struct homenode_model *m, const struct homenode_core *core, uint64_t vline)
{
	l1_change(m, core, vline, 0);
}

/* Removes the line from a core's caches. False: it was not there any more. */
static bool take_away(struct homenode_model *m, unsigned from, uint64_t line)
{
	struct homenode_core *core = &m->core[from];
	uint64_t vline = 0;

	homenode_core_lock(core);
	bool was = homenode_cache_drop(&core->l2, line, &vline);
	if (was)
		homenode_l1_drop(m, core, vline);
	homenode_core_unlock(core);
	return was;
}

/* The core keeps the line, clean and read-only. */
static void downgrade(struct homenode_model *m, unsigned from, uint64_t line)
{
	struct homenode_core *core = &m->core[from];

	homenode_core_lock(core);
	int64_t at = homenode_cache_find(&core->l2, line);
	if (at >= 0 && homenode_cache_set(&core->l2, (uint64_t)at, line, line + 1)) {
		uint64_t vline = core->l2.vlines[at];

		l1_change(m, core, vline, (vline + 1) | HOMENODE_L1_ASK);
	}
	homenode_core_unlock(core);
}

static void llc_drop(struct homenode_model *m, unsigned node, uint64_t line)
{
	int64_t at = homenode_cache_find(&m->llc[node], line);

	if (at >= 0 && homenode_cache_set(&m->llc[node], (uint64_t)at, line, 0)) {
		m->llc[node].holes[line & m->llc[node].set_mask]++;
		if (homenode_qos(m))
			homenode_qos_drop(m, node, (uint64_t)at);
	}
}

/* Copies in the LLCs of other nodes. */
static uint64_t elsewhere(uint64_t word, const struct homenode_vcpu *v)
{
	return word & NODES & ~LLC(v->node);
}

static uint64_t drop_elsewhere(struct homenode_model *m, const struct homenode_vcpu *v, uint64_t word, uint64_t line)
{
	for (uint64_t nodes = elsewhere(word, v); nodes; nodes &= nodes - 1)
		llc_drop(m, (unsigned)__builtin_ctzll(nodes), line);
	return word & ~elsewhere(word, v);
}

static void read_line(struct homenode_model *m, struct homenode_vcpu *v, struct homenode_claim *c,
		      uint64_t line, bool held)
{
	struct homenode_line *e = c->entry;
	uint64_t me = 1ULL << v->core_id, others = e->sharers & ~me;

	if (held && e->sharers & me)
		return;
	c->kind = HOMENODE_FETCH;
	if (c->word & MODIFIED && others) {
		c->kind = HOMENODE_PEER;
		c->from = (unsigned)__builtin_ctzll(others);
		c->latency = m->conf.transfer[v->node][m->core[c->from].node];
		downgrade(m, c->from, line);
		c->word |= CONTENDED;
	}
	c->word &= ~STATES;
	if (!others && !elsewhere(c->word, v))
		c->word |= EXCLUSIVE;
	c->word |= LLC(v->node);
	e->sharers |= me;
}

static void write_line(struct homenode_model *m, struct homenode_vcpu *v, struct homenode_claim *c,
		       uint64_t line, bool held)
{
	struct homenode_line *e = c->entry;
	uint64_t me = 1ULL << v->core_id, others = e->sharers & ~me, taken = 0;
	bool modified = c->word & MODIFIED;

	held = held && e->sharers & me;
	e->sharers = me;
	for (; others; others &= others - 1) {
		unsigned core = (unsigned)__builtin_ctzll(others);

		if (!take_away(m, core, line))
			continue;
		unsigned latency = m->conf.transfer[v->node][m->core[core].node];
		c->latency = latency > c->latency ? latency : c->latency;
		c->from = core;
		taken++;
	}
	v->ctr[HOMENODE_INVALIDATIONS] += taken;
	if (held)
		c->kind = taken ? HOMENODE_UPGRADE : HOMENODE_OWN;
	else
		c->kind = taken && modified ? HOMENODE_PEER : HOMENODE_FETCH;
	c->word = (drop_elsewhere(m, v, c->word, line) & ~EXCLUSIVE) | MODIFIED | LLC(v->node) |
		  (taken ? CONTENDED : 0);
}

/* Time until the line's last transfer ends; negative: it ended that long ago. */
static int64_t until_free(uint64_t word, uint64_t clock)
{
	return (int64_t)(word - (clock << FREE_SHIFT)) >> FREE_SHIFT;
}

/* Number 3, and the end of 4. */
static void queue_up(struct homenode_vcpu *v, bool ordered, struct homenode_claim *c)
{
	int64_t left = until_free(c->word, v->clock);

	if (!c->latency) {
		if (left < -QUIET)
			c->word &= ~CONTENDED;
		return;
	}
	if (ordered && left > 0 && left < WAIT_MOST)
		c->wait = (unsigned)left;
	c->word = (c->word & BEFORE_FREE) | (v->clock + c->wait + c->latency) << FREE_SHIFT;
}

struct homenode_claim homenode_directory_claim(struct homenode_model *m, struct homenode_vcpu *v,
					       uint64_t phys, int home, bool write)
{
	struct homenode_claim c = { .entry = entry_of(m, home, phys), .kind = HOMENODE_OWN };
	uint64_t line = phys >> HOMENODE_LINE_SHIFT, me = 1ULL << v->core_id;
	bool ordered = false;

	if (__atomic_load_n(&c.entry->word, __ATOMIC_RELAXED) & CONTENDED)
		ordered = homenode_clock_order(m, v, !write && homenode_cache_find(&v->core->l2, line) >= 0);
	c.word = lock(c.entry);
	bool held = homenode_cache_find(&v->core->l2, line) >= 0;
	if (!write)
		read_line(m, v, &c, line, held);
	else if (!held || c.entry->sharers != me)
		write_line(m, v, &c, line, held);
	else if (!(c.word & MODIFIED))
		c.word = (drop_elsewhere(m, v, c.word, line) & ~EXCLUSIVE) | MODIFIED;
	if (c.word & CONTENDED)
		queue_up(v, ordered, &c);
	c.contended = c.word & CONTENDED;
	return c;
}

void homenode_directory_done(struct homenode_claim *c)
{
	if (c->entry)
		unlock(c->entry, c->word);
}

bool homenode_directory_leave(struct homenode_model *m, struct homenode_vcpu *v, uint64_t line)
{
	uint64_t phys = line << HOMENODE_LINE_SHIFT, me = 1ULL << v->core_id;
	int home = homenode_home(m, phys);

	if (!m->conf.coherence || home < 0)
		return true;
	struct homenode_line *e = entry_of(m, home, phys);
	uint64_t word = lock(e);
	bool mine = e->sharers & me && homenode_cache_find(&v->core->l2, line) < 0;
	if (mine) {
		e->sharers &= ~me;
		word = (word & ~STATES) | LLC(v->node);
	}
	unlock(e, word);
	return mine;
}
