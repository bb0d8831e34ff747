// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The directory: for every line of memory, which cores may have it and whether one
 * of them alone. It keeps private caches coherent as MESI does, and says what that
 * costs.
 *
 * 1. A read of a line that another core modified takes it from there; both share it
 *    then, and it is clean.
 * 2. A write takes all other copies away. Held shared, that is an upgrade; not held,
 *    the data comes with it. Copies are taken away side by side: the farthest counts.
 * 3. Whoever takes a line from others waits until the transfer before is over: a line
 *    goes from one core to the next, not to two at once.
 * 4. From then on the line is contended: every access of user mode to it asks here,
 *    after all vCPUs that share lines have reached the same model time
 *    (homenode_clock_order), so that who comes first does not depend on the host. After
 *    QUIET cycles without a transfer it is an ordinary line again.
 *
 * Kernel mode takes part, but neither waits nor is waited for: the guest's spinlocks
 * bring their own order. In COUNT there is no common time, hence no order either.
 *
 * Each entry has a lock of its own, held for a few instructions; nobody holds two.
 */
#define _GNU_SOURCE
#include "clock.h"
#include <sched.h>
#include <sys/mman.h>

#define LOCK      (1ULL << 16)
#define MODIFIED  (1ULL << 17) /* sharers has one core, whose copy alone is right */
#define EXCLUSIVE (1ULL << 18) /* sharers has one core, memory is right */
#define CONTENDED (1ULL << 19)
#define STATES    (MODIFIED | EXCLUSIVE)
#define LLC(node) (1ULL << (node)) /* bits 0-15 */
#define FREE_SHIFT 24 /* bits 24-63: model clock at which its last transfer ends */
#define FREE_AT(word) ((word) >> FREE_SHIFT)
#define BEFORE_FREE ((1ULL << FREE_SHIFT) - 1)

#define QUIET 150000ULL /* cycles, some three times the vCPUs' skew */
#define WAIT_MOST 100000ULL /* cycles; a longer wait is somebody's clock, not a queue */
#define PATIENCE 200 /* looks at a lock before its holder is given the host's CPU */

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

void homenode_l1_drop(struct homenode_model *m, const struct homenode_core *core, uint64_t vline)
{
	for (unsigned i = 0; i < core->ncpu; i++) {
		uint64_t *slot = &m->vcpu[core->cpu[i]].l1[vline & m->l1_mask];

		if ((__atomic_load_n(slot, __ATOMIC_RELAXED) & HOMENODE_L1_LINE) == vline + 1)
			__atomic_store_n(slot, 0, __ATOMIC_RELAXED);
	}
}

/* Take the line out of a core's caches. False: it was gone already. */
static bool take_away(struct homenode_model *m, unsigned core, uint64_t line)
{
	uint64_t vline = 0;

	if (!homenode_cache_drop(&m->core[core].l2, line, &vline))
		return false;
	homenode_l1_drop(m, &m->core[core], vline);
	return true;
}

/* The core keeps the line, clean and to read only. */
static void downgrade(struct homenode_model *m, unsigned core, uint64_t line)
{
	struct homenode_cache *l2 = &m->core[core].l2;
	int64_t at = homenode_cache_find(l2, line);

	if (at < 0)
		return;
	l2->tags[at] &= ~HOMENODE_DIRTY;
	homenode_l1_drop(m, &m->core[core], l2->vlines[at]);
}

static void read_line(struct homenode_model *m, struct homenode_vcpu *v, struct homenode_line *e,
		      uint64_t *word, uint64_t line, bool held, struct homenode_claim *c)
{
	uint64_t me = 1ULL << v->core_id, others = e->sharers & ~me;

	if (held && e->sharers & me)
		return;
	c->kind = HOMENODE_FETCH;
	if (*word & MODIFIED && others) {
		unsigned owner = (unsigned)__builtin_ctzll(others);

		c->kind = HOMENODE_PEER;
		c->from = m->core[owner].node;
		c->latency = m->conf.transfer[v->node][c->from];
		downgrade(m, owner, line);
		*word |= CONTENDED | LLC(c->from);
	}
	*word = (*word & ~STATES) | LLC(v->node) | (others ? 0 : EXCLUSIVE);
	e->sharers |= me;
}

static void write_line(struct homenode_model *m, struct homenode_vcpu *v, struct homenode_line *e,
		       uint64_t *word, uint64_t line, bool held, struct homenode_claim *c)
{
	uint64_t me = 1ULL << v->core_id, others = e->sharers & ~me, taken = 0;
	uint64_t elsewhere = *word & (LLC(HOMENODE_MAX_NODES) - 1) & ~LLC(v->node), none = 0;

	held = held && e->sharers & me;
	for (; others; others &= others - 1) {
		unsigned core = (unsigned)__builtin_ctzll(others);

		if (!take_away(m, core, line))
			continue;
		unsigned latency = m->conf.transfer[v->node][m->core[core].node];
		c->latency = latency > c->latency ? latency : c->latency;
		c->from = m->core[core].node;
		taken++;
	}
	v->ctr[HOMENODE_INVALIDATIONS] += taken;
	if (held)
		c->kind = taken ? HOMENODE_UPGRADE : HOMENODE_OWN;
	else
		c->kind = taken && *word & MODIFIED ? HOMENODE_PEER : HOMENODE_FETCH;
	for (; elsewhere; elsewhere &= elsewhere - 1)
		homenode_cache_drop(&m->llc[__builtin_ctzll(elsewhere)], line, &none);
	*word = (*word & ~(EXCLUSIVE | (LLC(HOMENODE_MAX_NODES) - 1))) | MODIFIED | LLC(v->node) |
		(taken ? CONTENDED : 0);
	e->sharers = me;
}

/* Number 3, and the end of 4. */
static void queue_up(struct homenode_vcpu *v, uint64_t *word, bool ordered, struct homenode_claim *c)
{
	uint64_t free_at = FREE_AT(*word), start = v->clock;

	if (!c->latency) {
		/* far in the future: a clock of COUNT, which has nothing to do with this one */
		if (v->clock > free_at + QUIET || free_at > v->clock + QUIET)
			*word &= ~CONTENDED;
		return;
	}
	if (ordered && free_at > start && free_at - start < WAIT_MOST)
		start = free_at;
	c->wait = (unsigned)(start - v->clock);
	*word = (*word & BEFORE_FREE) | (start + c->latency) << FREE_SHIFT;
}

struct homenode_claim homenode_directory_claim(struct homenode_model *m, struct homenode_vcpu *v,
					       uint64_t phys, int home, bool write, bool held)
{
	struct homenode_line *e = entry_of(m, home, phys);
	struct homenode_claim c = { .kind = HOMENODE_OWN, .from = v->node };
	uint64_t line = phys >> HOMENODE_LINE_SHIFT, me = 1ULL << v->core_id;
	bool ordered = false;

	if (__atomic_load_n(&e->word, __ATOMIC_RELAXED) & CONTENDED)
		ordered = homenode_clock_order(m, v, !write && held);
	uint64_t word = lock(e);
	if (!write)
		read_line(m, v, e, &word, line, held, &c);
	else if (held && e->sharers == me)
		word = (word & ~EXCLUSIVE) | MODIFIED;
	else
		write_line(m, v, e, &word, line, held, &c);
	if (word & CONTENDED)
		queue_up(v, &word, ordered, &c);
	c.contended = word & CONTENDED;
	unlock(e, word);
	return c;
}

void homenode_directory_leave(struct homenode_model *m, struct homenode_vcpu *v, uint64_t line)
{
	uint64_t phys = line << HOMENODE_LINE_SHIFT;
	int home = homenode_home(m, phys);

	if (!m->conf.coherence || home < 0)
		return;
	struct homenode_line *e = entry_of(m, home, phys);
	uint64_t word = lock(e);
	e->sharers &= ~(1ULL << v->core_id);
	unlock(e, (word & ~STATES) | LLC(v->node));
}
