/* SPDX-License-Identifier: Apache-2.0 */
/* Attaches the System V segment with key 0x77, writes every page of it, and prints where
 * its pages are: the other process of TestLabRunSegments. With a number it makes a
 * segment of its own of that many bytes, which ends with it, and keeps it. */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/shm.h>
#include <unistd.h>

static void print_maps(void)
{
	static char text[1 << 16];
	int maps = open("/proc/self/numa_maps", O_RDONLY);
	long n;

	while ((n = read(maps, text, sizeof(text))) > 0)
		if (write(1, text, n) != n)
			exit(2);
}

int main(int argc, char **argv)
{
	int id = argc > 1 ? shmget(IPC_PRIVATE, atol(argv[1]), 0600) : shmget(0x77, 0, 0);
	struct shmid_ds about;
	char *at = shmat(id, 0, 0);

	if (at == (void *)-1 || shmctl(id, IPC_STAT, &about) || (argc > 1 && shmctl(id, IPC_RMID, 0)))
		return 1;
	for (unsigned long i = 0; i < about.shm_segsz; i += 4096)
		at[i] = 1;
	print_maps();
	if (argc > 1)
		pause();
	return 0;
}
