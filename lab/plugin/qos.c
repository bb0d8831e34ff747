// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Classes of service, as Intel's RDT has them: what an RMID holds and moves, which ways a class
 * fills, how fast its CPUs request lines.
 *
 * 1. A vCPU's word `pqr` has the CLOSID and the RMID of its task, as IA32_PQR_ASSOC.
 * 2. A line belongs to the RMID that brought it into the LLC, until another line takes its way.
 *    Hits change nothing (CMT).
 * 3. A line that is read from memory counts for the RMID that reads it; one that is written back
 *    for the RMID that it belonged to (MBM).
 * 4. A class finds lines in all ways, and puts lines only into its own (CAT).
 * 5. A throttled CPU leaves a gap between two requests from its private caches, whether the LLC
 *    has the lines or not, as the rate controller behind a core's L2 (MBA). At p percent of the
 *    LLC's own rate, a line in llc_cycles, the gap is llc_cycles * 100 / p. So a load that waits
 *    for memory anyway is slowed by tight limits only.
 *
 * Off, it costs a flag's test at each request, line and replacement.
 */
#include "model.h"

#define NOBODY 0xff /* owner of an empty way */

static uint64_t load(const uint64_t *word)
{
	return __atomic_load_n(word, __ATOMIC_RELAXED);
}

/* What the LLCs have belongs to RMID 0, as after a reset of the hardware. */
static void begin(struct homenode_model *m)
{
	memset(m->shared->held, 0, sizeof(m->shared->held));
	for (unsigned n = 0; n < m->conf.nnode; n++) {
		struct homenode_cache *c = &m->llc[n];

		for (uint64_t i = 0; i < (c->set_mask + 1) * c->ways; i++) {
			c->owners[i] = homenode_tag(c, i) ? 0 : NOBODY;
			m->shared->held[n][0] += !c->owners[i];
		}
	}
}

void homenode_qos_enter(struct homenode_model *m)
{
	struct homenode_lab_shared *s = m->shared;
	bool want = load(&s->qos) == 1;

	if (want == m->qos)
		return;
	if (want)
		begin(m);
	__atomic_store_n(&m->qos, want, __ATOMIC_RELEASE);
	__atomic_store_n(&s->qos_applied, want, __ATOMIC_RELEASE);
}

/* Returns the owner before. */
static unsigned char own(struct homenode_model *m, unsigned node, uint64_t at, unsigned char rmid)
{
	unsigned char before = __atomic_exchange_n(&m->llc[node].owners[at], rmid, __ATOMIC_RELAXED);

	if (before == rmid)
		return before;
	if (rmid != NOBODY)
		__atomic_fetch_add(&m->shared->held[node][rmid], 1, __ATOMIC_RELAXED);
	if (before != NOBODY)
		__atomic_fetch_sub(&m->shared->held[node][before], 1, __ATOMIC_RELAXED);
	return before;
}

static unsigned class_of(const struct homenode_vcpu *v)
{
	return HOMENODE_PQR_CLOSID(load(&v->pub->pqr));
}

static uint64_t ways_of(const struct homenode_model *m, const struct homenode_vcpu *v)
{
	uint64_t all = (1ULL << m->llc[v->node].ways) - 1, mask = load(&m->shared->ways[class_of(v)][v->node]) & all;

	return mask ? mask : all;
}

/* The n-th way of a mask. */
static unsigned nth(uint64_t mask, unsigned n)
{
	for (; n; n--)
		mask &= mask - 1;
	return (unsigned)__builtin_ctzll(mask);
}

/* An empty way of the mask, else one at random. */
static unsigned pick(struct homenode_cache *c, uint64_t set, uint64_t mask, uint64_t *random)
{
	for (uint64_t left = c->holes[set] ? mask : 0; left; left &= left - 1) {
		unsigned way = (unsigned)__builtin_ctzll(left);

		if (!homenode_tag(c, set * c->ways + way)) {
			c->holes[set]--;
			return way;
		}
	}
	return nth(mask, (unsigned)(homenode_random(random) >> 32) % (unsigned)__builtin_popcountll(mask));
}

struct homenode_victim homenode_qos_put(struct homenode_model *m, struct homenode_vcpu *v, uint64_t line, uint64_t dirty)
{
	struct homenode_cache *c = &m->llc[v->node];
	uint64_t set = line & c->set_mask, at = set * c->ways + pick(c, set, ways_of(m, v), &v->random);
	struct homenode_victim gone = { .tag = __atomic_exchange_n(&c->tags[at], (line + 1) | dirty, __ATOMIC_RELAXED) };

	gone.owner = own(m, (unsigned)v->node, at, HOMENODE_PQR_RMID(load(&v->pub->pqr)));
	return gone;
}

void homenode_qos_drop(struct homenode_model *m, unsigned node, uint64_t at)
{
	own(m, node, at, NOBODY);
}

void homenode_qos_line(struct homenode_model *m, unsigned cpu, int home, unsigned rmid)
{
	struct homenode_lab_traffic *t = &m->shared->traffic[cpu][rmid < HOMENODE_MAX_RMIDS ? rmid : 0];

	__atomic_fetch_add(&t->total, 1, __ATOMIC_RELAXED);
	if (m->conf.cpu_node[cpu] == home)
		__atomic_fetch_add(&t->local, 1, __ATOMIC_RELAXED);
}

/* Number 5. The clock is the shared one, of which a fast CPU has several cycles each. */
unsigned homenode_qos_wait(struct homenode_model *m, struct homenode_vcpu *v)
{
	uint64_t percent = load(&m->shared->throttle[class_of(v)][v->node]), wait = 0;

	if (percent == 0 || percent >= 100)
		return 0;
	if (v->request_at > v->clock)
		wait = v->request_at - v->clock;
	v->request_at = v->clock + wait + m->conf.llc_cycles * 100 / percent;
	return (unsigned)(v->fast > 1 ? wait * v->fast : wait);
}
