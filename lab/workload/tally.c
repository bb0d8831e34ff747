/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counts each worker's operations by phase. A batch is credited to the phase in which it began.
 * The clock read at its end closes that phase and opens the next, so operations and cycles of a
 * phase always belong together.
 */
#include "load.h"

static void enter_phase(struct homenode_worker *w)
{
	w->slot = &w->tally[homenode_clock_phase(&w->run->clock) % HOMENODE_PHASES];
	if (!w->slot->seen) {
		w->slot->seen = 1;
		w->slot->start = w->now;
	}
	w->slot->end = w->now;
}

/* After a wait: the phase may have changed without any work done. */
void homenode_tally_look(struct homenode_worker *w)
{
	w->now = homenode_clock_now(&w->run->clock);
	enter_phase(w);
}

void homenode_tally_credit(struct homenode_worker *w, uint64_t ops, uint64_t work)
{
	w->now = homenode_clock_now(&w->run->clock);
	w->slot->ops += ops;
	w->slot->work += work;
	w->slot->end = w->now;
	enter_phase(w);
}

struct homenode_hist *homenode_tally_latency(struct homenode_worker *w)
{
	return &w->latency[w->slot - w->tally];
}
