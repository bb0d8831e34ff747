// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Two threads of a core share its issue slots, one a cycle: a thread that waits for memory
 * leaves them to the other.
 *
 * A thread's rate is its instructions a cycle over the last RATE_CYCLES of its own
 * clock. An instruction takes 1 / (1 − the sibling's rate) cycles, and never more than
 * 2: two that only compute get a half each; next to a pointer chase one computes at
 * nearly full speed. A sibling that halts is noticed after RATE_CYCLES at most.
 */
#include "model.h"

#define RATE_CYCLES 8192
#define ONE 65536u

static void look_at_sibling(struct homenode_vcpu *v)
{
	uint64_t passed = v->clock - v->issued_since;
	uint64_t rate = v->issued * ONE / passed;
	unsigned other = 0;

	__atomic_store_n(&v->issue_rate, (unsigned)(rate < ONE ? rate : ONE), __ATOMIC_RELAXED);
	if (__atomic_load_n(&v->sibling->pub->running, __ATOMIC_RELAXED))
		other = __atomic_load_n(&v->sibling->issue_rate, __ATOMIC_RELAXED);
	v->issue_cost = other < ONE / 2 ? 256 * ONE / (ONE - other) : 512;
	v->issued = 0;
	v->issued_since = v->clock;
}

uint64_t homenode_smt_issue(struct homenode_vcpu *v, uint64_t n)
{
	v->issued += n;
	/* a jump of the clock (idle, a change of state) is no rate */
	if (v->clock - v->issued_since >= RATE_CYCLES)
		look_at_sibling(v);
	uint64_t cost = n * v->issue_cost + v->issue_rest;
	v->issue_rest = cost & 255;
	return cost >> 8;
}
