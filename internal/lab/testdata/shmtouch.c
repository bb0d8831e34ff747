/* SPDX-License-Identifier: Apache-2.0 */
/* Attaches the System V segment with key 0x77, writes every page of it, and prints where
 * its pages are: the other process of TestLabRunSegments. */
#include <fcntl.h>
#include <sys/shm.h>
#include <unistd.h>

int main(void)
{
	static char text[1 << 16];
	struct shmid_ds about;
	int id = shmget(0x77, 0, 0), maps;
	char *at = shmat(id, 0, 0);
	long n;

	if (at == (void *)-1 || shmctl(id, IPC_STAT, &about))
		return 1;
	for (unsigned long i = 0; i < about.shm_segsz; i += 4096)
		at[i] = 1;
	maps = open("/proc/self/numa_maps", O_RDONLY);
	while ((n = read(maps, text, sizeof(text))) > 0)
		if (write(1, text, n) != n)
			return 2;
	return 0;
}
