// SPDX-License-Identifier: Apache-2.0
// The workloads of scripts/bench-observe.sh:
//
//   bench-observe WORKLOADS PROCESSES SHARED_MIB PRIVATE_MIB BUSY BURST_US EVERY_MS DIR…
//
// Each process joins cgroup DIR<workload> of every DIR, maps its workload's shared
// memory, touches all of it, and some of its own. BUSY processes of a workload use
// BURST_US of CPU time every EVERY_MS; the others sleep. When all of them are ready,
// their ids go to standard output, one a line. They stay until standard input ends, and
// die with this process however it ends.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

static void fail(const char *what)
{
	fprintf(stderr, "bench-observe: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void join(const char *dir, int workload)
{
	char path[4096];
	snprintf(path, sizeof path, "%s%02d/cgroup.procs", dir, workload);
	int fd = open(path, O_WRONLY);
	if (fd < 0 || write(fd, "0\n", 2) != 2)
		fail(path);
	close(fd);
}

static void *fill(int fd, size_t size)
{
	int flags = fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED;
	flags |= MAP_POPULATE; // touches it all, with one system call
	char *p = mmap(NULL, size, PROT_READ | PROT_WRITE, flags, fd, 0);
	if (p == MAP_FAILED)
		fail("mmap");
	for (size_t at = 0; at < size; at += 4096)
		p[at] = 1;
	return p;
}

static void burn(long us)
{
	struct timespec t;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	long long end = t.tv_sec * 1000000000LL + t.tv_nsec + us * 1000LL;
	do
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	while (t.tv_sec * 1000000000LL + t.tv_nsec < end);
}

static void live(int busy, long us, long ms, int phase)
{
	struct timespec first = { 0, phase % 1000 * 1000000L }, pause_for = { ms / 1000, ms % 1000 * 1000000L };
	if (!busy)
		for (;;)
			pause();
	for (nanosleep(&first, NULL);; nanosleep(&pause_for, NULL))
		burn(us);
}

int main(int argc, char **argv)
{
	if (argc < 9) {
		fprintf(stderr, "usage: bench-observe WORKLOADS PROCESSES SHARED_MIB PRIVATE_MIB BUSY BURST_US EVERY_MS DIR...\n");
		return 2;
	}
	int workloads = atoi(argv[1]), processes = atoi(argv[2]), busy = atoi(argv[5]);
	size_t shared = (size_t)atoi(argv[3]) << 20, own = (size_t)atoi(argv[4]) << 20;
	long us = atol(argv[6]), ms = atol(argv[7]);
	for (int w = 0; w < workloads; w++) {
		int mem = memfd_create("bench-observe", MFD_CLOEXEC);
		if (mem < 0 || ftruncate(mem, shared))
			fail("memfd");
		for (int p = 0; p < processes; p++) {
			int ready[2];
			if (pipe(ready))
				fail("pipe");
			pid_t parent = getpid(), pid = fork();
			if (pid < 0)
				fail("fork");
			if (pid == 0) {
				prctl(PR_SET_PDEATHSIG, SIGKILL);
				if (getppid() != parent)
					_exit(1);
				for (int d = 8; d < argc; d++)
					join(argv[d], w);
				fill(mem, shared);
				fill(-1, own);
				if (write(ready[1], "", 1) != 1)
					_exit(1);
				close(ready[0]);
				close(ready[1]);
				close(mem);
				close(0);
				close(1);
				live(p < busy, us, ms, w * 20 + p * 7);
			}
			char c;
			close(ready[1]); // do not wait for a child that failed
			if (read(ready[0], &c, 1) != 1)
				fail("a process did not start");
			close(ready[0]);
			printf("%d\n", pid);
		}
		close(mem);
	}
	fflush(stdout);
	close(1);
	char c;
	while (read(0, &c, 1) > 0)
		;
	return 0;
}
