/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that is touched once and kept until the end: it fills a node, and a mover finds it idle.
 * --open keeps a file open without mapping it; --fork-when forks once, as soon as that file
 * exists.
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
	const char *sign = w->id == 0 ? w->run->opt.fork_when : NULL;

	homenode_tally_look(w);
	while (!homenode_stop.set) {
		homenode_sleep_us(HOLD_NAP_US);
		if (sign && access(sign, F_OK) == 0) {
			fork_child();
			sign = NULL;
		}
	}
	homenode_tally_look(w);
}

const struct homenode_mode homenode_hold = {
	.name = "hold",
	.allocate = hold_allocate,
	.work = hold_work,
};
