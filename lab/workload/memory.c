/* SPDX-License-Identifier: Apache-2.0 */
/* The memory of a run: mapped, bound, touched, filled. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "load.h"

#define HUGE_PAGE (2ULL << 20)
#define NODE_BITS 1024 /* the largest CONFIG_NODES_SHIFT of x86 is 10 */
#define MPOL_BIND 2    /* linux/mempolicy.h, which would otherwise need libnuma's headers */
#define MPOL_INTERLEAVE 3

static void set_policy(void *p, uint64_t bytes, int mode, const char *verb, const struct homenode_list *nodes)
{
	unsigned long mask[NODE_BITS / (8 * sizeof(long))] = { 0 };
	const unsigned int word = 8 * sizeof(long);

	for (uint64_t i = 0; i < nodes->n; i++) {
		uint64_t node = nodes->id[i];

		if (node >= NODE_BITS)
			homenode_fail(2, "%s memory to node %llu: no such node; see /sys/devices/system/node/online", verb,
				      (unsigned long long)node);
		mask[node / word] |= 1UL << (node % word);
	}
	/* get_nodes() in mm/mempolicy.c reads maxnode - 1 bits: pass bits + 1. */
	if (syscall(SYS_mbind, p, bytes, mode, mask, NODE_BITS + 1UL, 0UL))
		homenode_fail(errno == EINVAL ? 2 : 1,
			      "%s memory to node %u%s: %s; name nodes with memory, see /sys/devices/system/node/has_memory", verb,
			      nodes->id[0], nodes->n > 1 ? " and others" : "", strerror(errno));
}

/* --bind-mem or --interleave; they exclude each other. */
static void place_memory(const struct homenode_options *o, void *p, uint64_t bytes)
{
	struct homenode_list one = { .n = 1, .id = { (uint16_t)o->bind_mem } };

	if (o->bind_mem != HOMENODE_NONE)
		set_policy(p, bytes, MPOL_BIND, "bind", &one);
	else if (o->interleave.n)
		set_policy(p, bytes, MPOL_INTERLEAVE, "interleave", &o->interleave);
}

void *homenode_map(const struct homenode_options *o, uint64_t bytes, enum homenode_thp thp)
{
	uint64_t slack = thp == HOMENODE_THP_ON ? HUGE_PAGE : 0; /* a huge page needs 2 MiB alignment */
	uint8_t *p;

	bytes = (bytes + HOMENODE_PAGE - 1) & ~(uint64_t)(HOMENODE_PAGE - 1);
	p = mmap(NULL, bytes + slack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (p == MAP_FAILED)
		homenode_fail(1, "map %llu bytes of memory: %s; ask for less with --ws or --extra",
			      (unsigned long long)bytes, strerror(errno));
	if (slack)
		p = (uint8_t *)(((uintptr_t)p + HUGE_PAGE - 1) & ~(uintptr_t)(HUGE_PAGE - 1));
	/* Without THP in the kernel madvise returns EINVAL; "off" holds anyway then, and "on" is
	 * impossible. */
	if (thp != HOMENODE_THP_DEFAULT &&
	    madvise(p, bytes, thp == HOMENODE_THP_ON ? MADV_HUGEPAGE : MADV_NOHUGEPAGE) && thp == HOMENODE_THP_ON)
		homenode_fail(1, "ask for huge pages on %llu bytes: %s; use --thp off or default",
			      (unsigned long long)bytes, strerror(errno));
	place_memory(o, p, bytes);
	return p;
}

/* The next `bytes` of the file, which grows as needed. Main thread only. */
static void *map_file(const struct homenode_options *o, uint64_t bytes)
{
	static uint64_t used;
	uint64_t size = (bytes + HOMENODE_PAGE - 1) & ~(uint64_t)(HOMENODE_PAGE - 1);
	int fd = open(o->file, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	struct stat about;
	void *p = MAP_FAILED;

	/* a longer file keeps its length, and a part of it is mapped */
	if (fd >= 0 && !fstat(fd, &about) && ((uint64_t)about.st_size >= used + size || !ftruncate(fd, (off_t)(used + size))))
		p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)used);
	if (p == MAP_FAILED)
		homenode_fail(1, "map %llu bytes of %s: %s; name a file in a writable folder with room",
			      (unsigned long long)size, o->file, strerror(errno));
	close(fd);
	used += size;
	place_memory(o, p, size);
	return p;
}

struct homenode_region homenode_region_map(const struct homenode_options *o, uint64_t bytes)
{
	struct homenode_region r = { .bytes = bytes, .lines = bytes / HOMENODE_LINE };

	if (!o->file)
		return homenode_region_anonymous(o, bytes);
	r.base = map_file(o, bytes);
	return r;
}

struct homenode_region homenode_region_anonymous(const struct homenode_options *o, uint64_t bytes)
{
	struct homenode_region r = {
		.base = homenode_map(o, bytes, (enum homenode_thp)o->thp),
		.bytes = bytes,
		.lines = bytes / HOMENODE_LINE,
	};

	return r;
}

/* First touch of slice `part` of `parts`; a non-zero word per page, so that no page is the zero page. */
void homenode_touch_slice(const struct homenode_region *r, uint64_t part, uint64_t parts)
{
	uint64_t pages = (r->bytes + HOMENODE_PAGE - 1) / HOMENODE_PAGE;
	uint64_t last = pages * (part + 1) / parts;

	for (uint64_t i = pages * part / parts; i < last && !homenode_stop.set; i++)
		*(volatile uint64_t *)(r->base + i * HOMENODE_PAGE) = i + 1;
}

static uint64_t *line_word(const struct homenode_region *r, uint64_t line)
{
	return (uint64_t *)(r->base + line * HOMENODE_LINE);
}

/*
 * Links all lines of the region into one random cycle, in place: Sattolo's
 * algorithm (swap i with a j strictly below it) yields exactly one cycle, so
 * a chase visits every line once per lap.
 *  1. word 0 of line i holds i;
 *  2. for i from the last line down: swap with a random j < i;
 *  3. indices become pointers.
 * A stop leaves the region unfinished; then no worker chases it.
 */
void homenode_build_cycle(const struct homenode_region *r, uint64_t seed, uint64_t stream)
{
	struct homenode_rng rng;

	homenode_rng_seed(&rng, seed, HOMENODE_STREAM_REGION + stream);
	for (uint64_t i = 0; i < r->lines; i++) /* 1 */
		*line_word(r, i) = i;
	for (uint64_t i = r->lines - 1; i > 0 && !homenode_stop.set; i--) { /* 2 */
		uint64_t *a = line_word(r, i), *b = line_word(r, homenode_rng_below(&rng, i)), t = *a;

		*a = *b;
		*b = t;
	}
	for (uint64_t i = 0; i < r->lines; i++) /* 3 */
		*line_word(r, i) = (uintptr_t)line_word(r, *line_word(r, i));
}

void homenode_pin(uint64_t cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	if (cpu < CPU_SETSIZE)
		CPU_SET(cpu, &set);
	if (cpu >= CPU_SETSIZE || sched_setaffinity(0, sizeof(set), &set))
		homenode_fail(2, "pin to cpu %llu: no such cpu here; see /sys/devices/system/cpu/online",
			      (unsigned long long)cpu);
}
