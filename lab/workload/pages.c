/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counts where memory is, without any of homenode's own code, so that homenode is judged like
 * every other mover:
 *
 *   1. /proc/PID/maps and pagemap: each present page of each process, once, by its frame;
 *   2. /proc/kpageflags: its kind;
 *   3. move_pages(2) without nodes: its node;
 *   4. each --file is mapped here, its cached pages (mincore) are touched and looked up in the
 *      same way. Those that no listed process maps are "cache".
 *
 * Needs root.  Not atomic: only processes that do not run are counted exactly.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/kernel-page-flags.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "options.h"

enum kind { ANON,
	    THP,
	    SHMEM,
	    HUGETLB,
	    FILE_MAPPED,
	    CACHE,
	    KINDS,
};

static const char *const kind_names[KINDS] = { "anon", "thp", "shmem", "hugetlb", "file", "cache" };

#define BATCH    512 /* pages per call */
#define PRESENT  (1ULL << 63)
#define SWAPPED  (1ULL << 62)
#define FRAME    ((1ULL << 55) - 1)
#define FLAG(n)  (1ULL << (n))

static uint64_t bytes[KINDS][HOMENODE_MAX_NODES], swapped;
static uint8_t *seen; /* a bit a frame */
static uint64_t frames;
static int flags_fd;

static void open_frames(void)
{
	/* No file gives the highest frame; kpageflags ends behind it. Untouched bits cost nothing. */
	frames = 1ULL << 28; /* 1 TiB */
	seen = mmap(NULL, frames / 8, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	flags_fd = open("/proc/kpageflags", O_RDONLY | O_CLOEXEC);
	if (seen == MAP_FAILED || flags_fd < 0)
		homenode_fail(1, "open /proc/kpageflags: %s; run as root", strerror(errno));
}

static bool first_look(uint64_t frame)
{
	uint8_t bit = (uint8_t)(1 << (frame % 8));
	bool first;

	if (frame >= frames)
		homenode_fail(1, "count page frame %" PRIu64 ": beyond 1 TiB; this counter is for the lab", frame);
	first = !(seen[frame / 8] & bit);
	seen[frame / 8] |= bit;
	return first;
}

/* False: no page of a workload (the zero page, a device). */
static bool kind_of(uint64_t frame, enum kind *kind)
{
	uint64_t flags;

	if (pread(flags_fd, &flags, 8, (off_t)(frame * 8)) != 8)
		return false; /* a device's page, beyond memory */
	if (flags & (FLAG(KPF_ZERO_PAGE) | FLAG(KPF_NOPAGE)))
		return false;
	if (flags & FLAG(KPF_HUGE))
		*kind = HUGETLB;
	else if (flags & FLAG(KPF_ANON))
		*kind = flags & FLAG(KPF_THP) ? THP : ANON;
	else
		*kind = flags & FLAG(KPF_SWAPBACKED) ? SHMEM : FILE_MAPPED;
	return true;
}

/* A page that cannot be queried (the vDSO) has a negative status, and is left out. */
static void count_pages(int pid, void **at, const uint64_t *frame, unsigned long n, bool cache)
{
	int status[BATCH];

	if (n == 0 || syscall(SYS_move_pages, pid, n, at, NULL, status, 0))
		return; /* it ended */
	for (unsigned long i = 0; i < n; i++) {
		enum kind kind;

		if (status[i] < 0 || status[i] >= HOMENODE_MAX_NODES || !kind_of(frame[i], &kind) || !first_look(frame[i]))
			continue;
		bytes[cache ? CACHE : kind][status[i]] += HOMENODE_PAGE;
	}
}

/* [from, to) of a process, by its pagemap. */
static void count_range(int pid, int pagemap, uint64_t from, uint64_t to, bool cache)
{
	uint64_t entry[BATCH], frame[BATCH];
	void *at[BATCH];

	while (from < to) {
		uint64_t n = homenode_min(BATCH, (to - from) / HOMENODE_PAGE);
		ssize_t got = pread(pagemap, entry, n * 8, (off_t)(from / HOMENODE_PAGE * 8));
		unsigned long present = 0;

		if (got <= 0)
			return;
		n = (uint64_t)got / 8;
		for (uint64_t i = 0; i < n; i++) {
			if (entry[i] & SWAPPED)
				swapped += HOMENODE_PAGE;
			if (!(entry[i] & PRESENT) || !(entry[i] & FRAME))
				continue;
			frame[present] = entry[i] & FRAME;
			at[present++] = (void *)(from + i * HOMENODE_PAGE);
		}
		count_pages(pid, at, frame, present, cache);
		from += n * HOMENODE_PAGE;
	}
}

static int open_pagemap(int pid)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/pagemap", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 && errno != ENOENT)
		homenode_fail(1, "open %s: %s; run as root", path, strerror(errno));
	return fd;
}

static uint64_t count_process(int pid)
{
	int pagemap = open_pagemap(pid);
	unsigned long from, to;
	char path[64], line[4096];
	FILE *maps;

	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	maps = pagemap < 0 ? NULL : fopen(path, "re");
	if (!maps)
		return 0; /* it ended */
	while (fgets(line, sizeof(line), maps))
		if (sscanf(line, "%lx-%lx", &from, &to) == 2 && to <= 1UL << 47)
			count_range(pid, pagemap, from, to, false);
	fclose(maps);
	close(pagemap);
	return 1;
}

/* Touches cached pages only, so nothing is read in. */
static void count_cached(uint8_t *base, uint64_t size, int pagemap)
{
	static unsigned char cached[BATCH];

	madvise(base, size, MADV_RANDOM);
	for (uint64_t at = 0; at < size; at += BATCH * HOMENODE_PAGE) {
		uint64_t n = homenode_min(BATCH * HOMENODE_PAGE, size - at);

		if (mincore(base + at, n, cached))
			continue;
		for (uint64_t i = 0; i * HOMENODE_PAGE < n; i++)
			if (cached[i] & 1)
				(void)*(volatile uint8_t *)(base + at + i * HOMENODE_PAGE);
		count_range(0, pagemap, (uint64_t)base + at, ((uint64_t)base + at + n + HOMENODE_PAGE - 1) & ~(HOMENODE_PAGE - 1ULL),
			    true);
	}
}

static void count_file(const char *path, int pagemap)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat about;
	uint8_t *base;

	if (fd < 0 || fstat(fd, &about))
		homenode_fail(2, "open %s: %s; name a file", path, strerror(errno));
	if (about.st_size > 0) {
		base = mmap(NULL, (size_t)about.st_size, PROT_READ, MAP_SHARED, fd, 0);
		if (base == MAP_FAILED)
			homenode_fail(1, "map %s: %s", path, strerror(errno));
		count_cached(base, (uint64_t)about.st_size, pagemap);
		munmap(base, (size_t)about.st_size);
	}
	close(fd);
}

static void print_counts(uint64_t processes)
{
	fputs("{\"schema\":1,\"bytes\":{", stdout);
	for (int k = 0; k < KINDS; k++) {
		fputs(k ? "," : "", stdout);
		homenode_json_array(stdout, kind_names[k], bytes[k], HOMENODE_MAX_NODES);
	}
	printf("},\"swapped_bytes\":%" PRIu64 ",\"processes\":%" PRIu64 "}\n", swapped, processes);
	homenode_output_commit(stdout, NULL);
}

/* --pid and --file may be repeated; --pid takes a list. Processes come first: pages that they map
 * are not cache. */
int homenode_pages_main(int argc, char **argv)
{
	uint64_t processes = 0;
	int self = open_pagemap((int)getpid());

	open_frames();
	for (int i = 2; i < argc; i += 2) {
		if (i + 1 == argc || (strcmp(argv[i], "--pid") && strcmp(argv[i], "--file")))
			homenode_fail(2, "read pages argument \"%s\": use pages --pid P[,P] [--file PATH]…", argv[i]);
		if (strcmp(argv[i], "--pid"))
			continue;
		for (char *p = argv[i + 1], *end; *p; p = *end ? end + 1 : end) {
			long pid = strtol(p, &end, 10);

			if (end == p || (*end && *end != ',') || pid < 1)
				homenode_fail(2, "parse --pid \"%s\": not a list of process ids", argv[i + 1]);
			processes += count_process((int)pid);
		}
	}
	for (int i = 2; i < argc; i += 2)
		if (!strcmp(argv[i], "--file"))
			count_file(argv[i + 1], self);
	print_counts(processes);
	return 0;
}
