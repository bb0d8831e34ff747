/* SPDX-License-Identifier: Apache-2.0 */
/* Touches a mapping of that many bytes, prints its process id, and then maps and unmaps 8
 * pages next to it as fast as it can, until it is killed: the mapping grows and shrinks
 * while it is read (TestLabMigrateChurn). */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#define HOLE (8 * 4096)

static char *map(char *at, size_t bytes, int flags)
{
	char *mem = mmap(at, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);

	if (mem == MAP_FAILED)
		exit(1);
	return mem;
}

int main(int argc, char **argv)
{
	size_t bytes = argc > 1 ? strtoul(argv[1], NULL, 10) : 0;
	char *mem;

	if (!bytes || prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0))
		return 1;
	mem = map(NULL, HOLE + bytes, 0);
	for (size_t i = HOLE; i < HOLE + bytes; i += 4096)
		mem[i] = 1;
	puts("ready");
	fflush(stdout);
	for (;;) {
		if (munmap(mem, HOLE))
			return 1;
		map(mem, HOLE, MAP_FIXED_NOREPLACE);
	}
}
