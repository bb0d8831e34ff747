/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The system calls of the other tools, without the tools, timed by the model clock:
 *
 *   peer migrate-pages PID FROM TO   numactl's migratepages: numa_parse_nodestring() of
 *                                    both lists, then one migrate_pages(2) over all of the
 *                                    process (numa_migrate_pages() in libnuma.c)
 *   peer write FILE TEXT             one write(2), as `echo 0 > cpuset.mems` is
 *
 * And what a program without a capability sees: drop CAP[,CAP] COMMAND…
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/capability.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "options.h"

#define NODE_BITS 1024
#define WORD_BITS (8 * sizeof(long))

struct call {
	uint64_t start, end; /* cycles */
	long returned;
	int error;
};

static int print_call(const struct homenode_clock *clock, const struct call *c)
{
	printf("{\"clock\":\"%s\",\"mhz\":%" PRIu64 ",\"start_cycles\":%" PRIu64 ",\"end_cycles\":%" PRIu64
	       ",\"return\":%ld,\"error\":",
	       homenode_clock_name(clock), clock->mhz, c->start, c->end, c->returned);
	if (c->returned < 0)
		printf("\"%s\"}\n", strerror(c->error));
	else
		puts("null}");
	homenode_output_commit(stdout, NULL);
	return c->returned < 0;
}

/* "0", "0-1,3" */
static void parse_nodes(const char *text, unsigned long *mask)
{
	const char *p = text;

	for (;;) {
		unsigned long low, high;
		char *end;

		low = high = strtoul(p, &end, 10);
		if (end != p && *end == '-')
			high = strtoul(p = end + 1, &end, 10);
		if (end == p || (*end && *end != ',') || high < low || high >= NODE_BITS)
			homenode_fail(2, "parse nodes \"%s\": not a list of nodes; write e.g. 0 or 0-1,3", text);
		for (; low <= high; low++)
			mask[low / WORD_BITS] |= 1UL << (low % WORD_BITS);
		if (!*end)
			return;
		p = end + 1;
	}
}

static int migrate_pages_main(char **argv)
{
	unsigned long from[NODE_BITS / WORD_BITS] = { 0 }, to[NODE_BITS / WORD_BITS] = { 0 };
	struct homenode_clock clock;
	struct call c;
	char *end;
	long pid = strtol(argv[0], &end, 10);

	if (end == argv[0] || *end || pid < 1)
		homenode_fail(2, "parse process \"%s\": not a process id", argv[0]);
	parse_nodes(argv[1], from);
	parse_nodes(argv[2], to);
	homenode_clock_open(&clock, "/sys", false);
	c.start = homenode_clock_now(&clock);
	c.returned = syscall(SYS_migrate_pages, (pid_t)pid, NODE_BITS + 1UL, from, to);
	c.error = errno;
	c.end = homenode_clock_now(&clock);
	return print_call(&clock, &c);
}

static int write_main(char **argv)
{
	struct homenode_clock clock;
	struct call c;
	int fd = open(argv[0], O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		homenode_fail(2, "open %s: %s", argv[0], strerror(errno));
	homenode_clock_open(&clock, "/sys", false);
	c.start = homenode_clock_now(&clock);
	c.returned = write(fd, argv[1], strlen(argv[1]));
	c.error = errno;
	c.end = homenode_clock_now(&clock);
	return print_call(&clock, &c);
}

int homenode_peer_main(int argc, char **argv)
{
	if (argc == 6 && !strcmp(argv[2], "migrate-pages"))
		return migrate_pages_main(argv + 3);
	if (argc == 5 && !strcmp(argv[2], "write"))
		return write_main(argv + 3);
	homenode_fail(2, "read peer arguments: use peer migrate-pages PID FROM TO, or peer write FILE TEXT");
}

static const struct {
	const char *name;
	unsigned long number;
} capabilities[] = { { "sys_nice", CAP_SYS_NICE }, { "sys_ptrace", CAP_SYS_PTRACE }, { "sys_admin", CAP_SYS_ADMIN } };

static void drop(const char *name)
{
	for (size_t i = 0; i < sizeof(capabilities) / sizeof(capabilities[0]); i++) {
		if (strcmp(name, capabilities[i].name))
			continue;
		if (prctl(PR_CAPBSET_DROP, capabilities[i].number))
			homenode_fail(1, "drop %s: %s; run as root", name, strerror(errno));
		return;
	}
	homenode_fail(2, "parse capability \"%s\": use sys_nice, sys_ptrace or sys_admin", name);
}

/* An exec does not restore a capability that left the bounding set, not even for root. */
int homenode_drop_main(int argc, char **argv)
{
	if (argc < 4)
		homenode_fail(2, "read drop arguments: use drop CAP[,CAP] COMMAND…");
	for (char *name = strtok(argv[2], ","); name; name = strtok(NULL, ","))
		drop(name);
	execvp(argv[3], argv + 3);
	homenode_fail(1, "run %s: %s", argv[3], strerror(errno));
}
