/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Code that another thread changes: one thread calls a function for ever, the other rewrites
 * what it returns, twice in a row, and waits until the first has seen the second value. Each
 * change has a mapping of its own, as the kernel's have (text_poke() in alternative.c).
 *
 *   patch ROUNDS
 *
 * A CPU sees it after a call or two. An emulator that translated the first value, and did not
 * notice the second, never does.
 */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "options.h"

#define PAGE 4096
#define PATIENCE 1000000 /* calls after a change */
#define GAP_MOST 4096    /* iterations between the two changes: longer than a translation takes */

/* mov $value, %eax; ret: the value is aligned, so that a store to it is one */
static const uint8_t code[] = { 0xb8, 0, 0, 0, 0, 0xc3 };
#define CODE_AT 3

typedef uint32_t function(void);

static int file;
static function *call;
static uint32_t seen;
static uint64_t calls;
static bool done;

static void *reader(void *unused)
{
	while (!__atomic_load_n(&done, __ATOMIC_RELAXED)) {
		__atomic_store_n(&seen, call(), __ATOMIC_RELEASE);
		__atomic_store_n(&calls, calls + 1, __ATOMIC_RELEASE);
	}
	return unused;
}

static void *map_page(int protection)
{
	void *page = mmap(NULL, PAGE, protection, MAP_SHARED, file, 0);

	if (page == MAP_FAILED)
		homenode_fail(1, "map a page of code: %s", strerror(errno));
	return page;
}

static void place_code(void)
{
	file = memfd_create("code", MFD_CLOEXEC);
	if (file < 0 || pwrite(file, code, sizeof(code), CODE_AT) != sizeof(code) || ftruncate(file, PAGE))
		homenode_fail(1, "write a page of code: %s", strerror(errno));
	call = (function *)(void *)((char *)map_page(PROT_READ | PROT_EXEC) + CODE_AT);
}

static void change(uint32_t to)
{
	char *page = map_page(PROT_READ | PROT_WRITE);

	__atomic_store_n((uint32_t *)(void *)(page + CODE_AT + 1), to, __ATOMIC_SEQ_CST);
	munmap(page, PAGE);
}

/* False: the reader called it often, and still has not seen this value. */
static bool shows_up(uint32_t want)
{
	uint64_t now, since = __atomic_load_n(&calls, __ATOMIC_ACQUIRE);

	do { /* calls first: this thread may lose its CPU between the two */
		now = __atomic_load_n(&calls, __ATOMIC_ACQUIRE);
		if (__atomic_load_n(&seen, __ATOMIC_ACQUIRE) == want)
			return true;
	} while (now <= since + PATIENCE);
	return false;
}

int homenode_patch_main(int argc, char **argv)
{
	uint64_t rounds = argc == 3 ? strtoull(argv[2], NULL, 10) : 0, round = 0;
	uint32_t gap = 1;
	pthread_t thread;

	if (!rounds || rounds > UINT32_MAX / 2)
		homenode_fail(2, "read patch arguments: use patch ROUNDS, 1 or more");
	place_code();
	if (pthread_create(&thread, NULL, reader, NULL))
		homenode_fail(1, "start a thread: out of memory");
	for (; round < rounds; round++) {
		change((uint32_t)(2 * round + 1));
		gap = gap * 1664525 + 1013904223;
		for (volatile uint32_t i = gap >> 16; i % GAP_MOST; i--)
			;
		change((uint32_t)(2 * round + 2));
		if (!shows_up((uint32_t)(2 * round + 2)))
			break;
	}
	__atomic_store_n(&done, true, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	printf("{\"rounds\":%" PRIu64 ",\"stale\":%s}\n", round, round < rounds ? "true" : "false");
	homenode_output_commit(stdout, NULL);
	return round < rounds;
}
