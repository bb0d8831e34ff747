// SPDX-License-Identifier: Apache-2.0
// The hostile user of scripts/test-hostile.sh:
//
//   test-hostile USER GROUPS PROCESSES MAPPINGS FOLDERS DIR...
//
// In each of GROUPS cgroups DIR<group> (of every DIR) are PROCESSES processes of USER. Those
// of a group share one memory map (clone with CLONE_VM): MAPPINGS mappings of one file, in
// FOLDERS folders with names of 250 bytes below the current one, so that each process's
// numa_maps is as large as a user can make it, and takes little memory. When all are there,
// "ready" goes to standard output. They stay until standard input ends, and die with this
// process however it ends.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define STACK 16384

static void fail(const char *what)
{
	fprintf(stderr, "test-hostile: %s: %s\n", what, strerror(errno));
	exit(1);
}

// deep makes a file below this many folders. Its path may be longer than any call takes.
static int deep(int folders)
{
	char name[251];
	memset(name, 'd', 250);
	name[250] = 0;
	int at = open(".", O_PATH | O_DIRECTORY);
	for (int i = 0; i < folders; i++) {
		if (mkdirat(at, name, 0755) && errno != EEXIST)
			fail("mkdir");
		int below = openat(at, name, O_PATH | O_DIRECTORY);
		if (below < 0)
			fail("open");
		close(at);
		at = below;
	}
	int file = openat(at, "f", O_RDWR | O_CREAT, 0644);
	if (file < 0 || ftruncate(file, 4096))
		fail("file");
	close(at);
	return file;
}

static void map(int file, int mappings)
{
	for (int i = 0; i < mappings; i++) {
		volatile char *p = mmap(NULL, 4096, PROT_READ, MAP_SHARED, file, 0);
		if (p == MAP_FAILED)
			fail("mmap");
		(void)*p; // it is in the page table
	}
}

static int live(void *parent)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != *(pid_t *)parent)
		syscall(SYS_exit, 1);
	for (;;)
		syscall(SYS_ppoll, NULL, 0, NULL, NULL, 0);
	return 0;
}

// lead is the first process of a group. It tells the ids of the others.
static void lead(pid_t parent, int user, int processes, int mappings, int file, int tell)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (setgroups(0, NULL) || setresgid(user, user, user) || setresuid(user, user, user))
		fail("become the user");
	prctl(PR_SET_PDEATHSIG, SIGKILL); // the other user's took it away
	if (getppid() != parent)
		_exit(1);
	map(file, mappings);
	char *stacks = mmap(NULL, (size_t)processes * STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (stacks == MAP_FAILED)
		fail("stacks");
	for (int i = 1; i < processes; i++) {
		pid_t pid = clone(live, stacks + (size_t)(i + 1) * STACK, CLONE_VM | CLONE_PARENT, &parent);
		if (pid < 0)
			fail("clone");
		if (write(tell, &pid, sizeof pid) != sizeof pid)
			fail("tell");
	}
	close(tell);
	live(&parent);
}

static void join(char **dirs, int n, int group, pid_t pid)
{
	for (int i = 0; i < n; i++) {
		char path[4096], id[16];
		snprintf(path, sizeof path, "%s%03d/cgroup.procs", dirs[i], group);
		int fd = open(path, O_WRONLY), size = snprintf(id, sizeof id, "%d\n", pid);
		if (fd < 0 || write(fd, id, size) != size)
			fail(path);
		close(fd);
	}
}

int main(int argc, char **argv)
{
	if (argc < 7) {
		fprintf(stderr, "usage: test-hostile USER GROUPS PROCESSES MAPPINGS FOLDERS DIR...\n");
		return 2;
	}
	int user = atoi(argv[1]), groups = atoi(argv[2]), processes = atoi(argv[3]), mappings = atoi(argv[4]), file = deep(atoi(argv[5])), all = 0;
	struct rlimit many = { RLIM_INFINITY, RLIM_INFINITY };
	setrlimit(RLIMIT_NPROC, &many);
	for (int g = 0; g < groups; g++) {
		int ids[2];
		if (pipe2(ids, O_CLOEXEC))
			fail("pipe");
		pid_t parent = getpid(), pid = fork();
		if (pid < 0)
			fail("fork");
		if (pid == 0) {
			close(ids[0]);
			close(0);
			close(1);
			lead(parent, user, processes, mappings, file, ids[1]);
		}
		close(ids[1]);
		join(argv + 6, argc - 6, g, pid);
		all++;
		// Not until the end of the pipe: the processes have it open, too.
		for (int i = 1; i < processes && read(ids[0], &pid, sizeof pid) == sizeof pid; i++, all++)
			join(argv + 6, argc - 6, g, pid);
		close(ids[0]);
	}
	if (all != groups * processes) {
		fprintf(stderr, "test-hostile: %d of %d processes started\n", all, groups * processes);
		return 1;
	}
	printf("ready\n");
	fflush(stdout);
	close(1);
	char c;
	while (read(0, &c, 1) > 0)
		;
	return 0;
}
