// SPDX-License-Identifier: Apache-2.0
// What scripts/bench-stat.sh needs: processes to look at, and CPU time to compare.
//
//   bench-stat hold N FILE    N processes with some memory; their ids go to FILE
//   bench-stat many N FILE    one process with N mappings; its id goes to FILE
//   bench-stat compare NAME LIMIT REPEATS A… -- B…
//
//   bench-stat below NAME MILLISECONDS REPEATS A…
//
// hold and many stay until their standard input ends. compare runs A and B in
// turns with their output thrown away and prints one JSON line: the median over
// all pairs of CPU time (user + system, from wait4) of A relative to B. below
// relates A to a time.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <signal.h>
#include <unistd.h>

static void fail(const char *what)
{
	fprintf(stderr, "bench-stat: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void until_stdin_ends(void)
{
	char c;
	while (read(0, &c, 1) > 0)
		;
}

// One process: a heap of 1 MiB, 16 mappings like an allocator's, and the usual code and
// libraries. 500 of them take about 1 GiB.
static void fill(void)
{
	for (int i = 0; i < 16; i++)
		memset(malloc(64 << 10), 1, 64 << 10);
	for (int i = 0; i < 16; i++) {
		char *p = mmap(NULL, 128 << 10, i % 2 ? PROT_READ | PROT_WRITE : PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (p == MAP_FAILED)
			fail("mmap");
		if (i % 2)
			memset(p, 1, 128 << 10);
	}
}

static int hold(int n, const char *file)
{
	FILE *out = fopen(file, "w");
	if (!out)
		fail(file);
	for (int i = 0; i < n; i++) {
		pid_t pid = fork();
		if (pid < 0)
			fail("fork");
		if (pid == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			fill();
			pause();
			_exit(0);
		}
		fprintf(out, "%d\n", pid);
	}
	fclose(out);
	until_stdin_ends();
	return 0; // the children die with us
}

// Neighbours of different protection do not merge; every second one has a page.
static int many(int n, const char *file)
{
	FILE *out = fopen(file, "w");
	if (!out)
		fail(file);
	for (int i = 0; i < n; i++) {
		int prot = i % 2 ? PROT_READ | PROT_WRITE : PROT_READ;
		char *p = mmap(NULL, 4096, prot, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (p == MAP_FAILED)
			fail("mmap");
		if (i % 2)
			*p = 1;
	}
	fprintf(out, "%d\n", getpid());
	fclose(out);
	until_stdin_ends();
	return 0;
}

// CPU seconds of a command.
static double run(char **argv)
{
	struct rusage u;
	int status;
	pid_t pid = fork();
	if (pid < 0)
		fail("fork");
	if (pid == 0) {
		int null = open("/dev/null", O_RDWR);
		dup2(null, 0);
		dup2(null, 1);
		execvp(argv[0], argv);
		fail(argv[0]);
	}
	if (wait4(pid, &status, 0, &u) < 0)
		fail("wait4");
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
		fprintf(stderr, "bench-stat: %s failed: status %d\n", argv[0], status);
		exit(1);
	}
	return u.ru_utime.tv_sec + u.ru_stime.tv_sec + (u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static double median(double *v, int n)
{
	qsort(v, n, sizeof *v, by_size);
	return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

static int compare(int argc, char **argv)
{
	const char *name = argv[0];
	double limit = atof(argv[1]);
	int repeats = atoi(argv[2]), split = 3;
	while (split < argc && strcmp(argv[split], "--") != 0)
		split++;
	if (repeats < 1 || split + 1 >= argc) {
		fprintf(stderr, "bench-stat compare NAME LIMIT REPEATS A… -- B…\n");
		return 2;
	}
	argv[split] = NULL;
	double *a = calloc(repeats, sizeof *a), *b = calloc(repeats, sizeof *b), *r = calloc(repeats, sizeof *r);
	run(argv + 3); // both are in memory
	run(argv + split + 1);
	for (int i = 0; i < repeats; i++) {
		if (i % 2) {
			a[i] = run(argv + 3);
			b[i] = run(argv + split + 1);
		} else {
			b[i] = run(argv + split + 1);
			a[i] = run(argv + 3);
		}
		r[i] = a[i] / b[i];
	}
	double mid = median(r, repeats);
	printf("{\"name\":\"%s\",\"ratio\":%.3f,\"limit\":%.3f,\"met\":%s,\"repeats\":%d,\"min\":%.3f,\"max\":%.3f,\"cpu_ms\":%.1f,\"reference_cpu_ms\":%.1f}\n",
	       name, mid, limit, mid <= limit ? "true" : "false", repeats, r[0], r[repeats - 1], median(a, repeats) * 1e3, median(b, repeats) * 1e3);
	return 0;
}

static int below(char **argv)
{
	double limit = atof(argv[1]);
	int repeats = atoi(argv[2]);
	if (repeats < 1 || limit <= 0)
		return 2;
	double *a = calloc(repeats, sizeof *a);
	run(argv + 3);
	for (int i = 0; i < repeats; i++)
		a[i] = run(argv + 3) * 1e3 / limit;
	double mid = median(a, repeats);
	printf("{\"name\":\"%s\",\"ratio\":%.3f,\"limit\":1,\"met\":%s,\"repeats\":%d,\"min\":%.3f,\"max\":%.3f,\"cpu_ms\":%.1f,\"reference_cpu_ms\":%.1f}\n",
	       argv[0], mid, mid <= 1 ? "true" : "false", repeats, a[0], a[repeats - 1], mid * limit, limit);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 4 && strcmp(argv[1], "hold") == 0)
		return hold(atoi(argv[2]), argv[3]);
	if (argc == 4 && strcmp(argv[1], "many") == 0)
		return many(atoi(argv[2]), argv[3]);
	if (argc > 6 && strcmp(argv[1], "compare") == 0)
		return compare(argc - 2, argv + 2);
	if (argc > 5 && strcmp(argv[1], "below") == 0)
		return below(argv + 2);
	fprintf(stderr, "bench-stat hold N FILE | many N FILE | compare NAME LIMIT REPEATS A… -- B… | below NAME MS REPEATS A…\n");
	return 2;
}
