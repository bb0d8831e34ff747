/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads that wait for each other every --barrier N ops and spin meanwhile, as those of parallel
 * programs do. The slowest sets the pace; a waiting thread counts instructions but no work. Warm
 * laps have no barriers.
 */
#include "load.h"

void homenode_barrier_allocate(struct homenode_run *run)
{
	if (run->opt.barrier)
		run->barrier = homenode_map(&run->opt, sizeof(*run->barrier), HOMENODE_THP_DEFAULT);
}

/* Returns once all workers have arrived, or the run is over. */
static void meet(const struct homenode_run *run)
{
	struct homenode_barrier *b = run->barrier;
	uint64_t met = __atomic_load_n(&b->met, __ATOMIC_ACQUIRE);

	if (__atomic_add_fetch(&b->arrived, 1, __ATOMIC_ACQ_REL) == run->opt.threads) {
		__atomic_store_n(&b->arrived, 0, __ATOMIC_RELAXED);
		__atomic_store_n(&b->met, met + 1, __ATOMIC_RELEASE);
		return;
	}
	while (__atomic_load_n(&b->met, __ATOMIC_ACQUIRE) == met && !homenode_stop.set)
		__builtin_ia32_pause();
}

uint64_t homenode_barrier_batch(struct homenode_worker *w, uint64_t n)
{
	const uint64_t every = w->run->opt.barrier;
	uint64_t left = n;

	if (!every)
		return w->run->mode->batch_run(w, n);
	while (left && !homenode_stop.set) {
		uint64_t done = w->run->mode->batch_run(w, homenode_min(left, every - w->since_barrier));

		left -= done;
		w->since_barrier += done;
		if (w->since_barrier == every) {
			meet(w->run);
			w->since_barrier = 0;
		}
	}
	return n - left;
}
