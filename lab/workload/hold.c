/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that is touched once and kept until the end: it fills a node, and it is what
 * a mover finds asleep.  --open keeps a file open without mapping it; --fork-ms forks
 * once, that long after the start.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "load.h"

#define HOLD_NAP_US 10000

static void hold_allocate(struct homenode_run *run)
{
	const char *path = run->opt.open;

	if (path && open(path, O_RDONLY | O_CLOEXEC) < 0) /* until the end */
		homenode_fail(2, "open %s: %s; name a file", path, strerror(errno));
}

/* The child shares all private pages until one of the two writes; it ends with its parent. */
static void fork_child(void)
{
	pid_t child = fork();

	if (child < 0)
		homenode_fail(1, "fork: %s; give the cgroup room for one more process", strerror(errno));
	if (child)
		return;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;)
		pause();
}

static void hold_work(struct homenode_worker *w)
{
	uint64_t left_us = w->run->opt.fork_ms == HOMENODE_NONE ? HOMENODE_NONE : w->run->opt.fork_ms * 1000;

	homenode_tally_look(w);
	while (!homenode_stop.set) {
		uint64_t nap = homenode_min(HOLD_NAP_US, left_us);

		homenode_sleep_us(nap);
		if (left_us == HOMENODE_NONE)
			continue;
		left_us -= nap;
		if (left_us == 0) {
			if (w->id == 0)
				fork_child();
			left_us = HOMENODE_NONE;
		}
	}
	homenode_tally_look(w);
}

const struct homenode_mode homenode_hold = {
	.name = "hold",
	.allocate = hold_allocate,
	.work = hold_work,
};
