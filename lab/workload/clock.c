/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the ivshmem device of the lab and maps its shared file. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "clock.h"
#include "load.h"

/* <device>/vendor and <device>/device hold one line such as "0x1af4"; -1 = unreadable */
static long read_hex(const char *dir, const char *file)
{
	char path[512], text[32];
	long value = -1;
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", dir, file);
	f = fopen(path, "re");
	if (!f)
		return -1;
	if (fgets(text, sizeof(text), f))
		value = strtol(text, NULL, 16);
	fclose(f);
	return value;
}

static volatile struct homenode_lab_shared *map_lab(const char *dir, bool writable)
{
	volatile struct homenode_lab_shared *lab;
	char path[512];
	void *p;
	int fd;

	snprintf(path, sizeof(path), "%s/resource2", dir);
	fd = open(path, (writable ? O_RDWR : O_RDONLY) | O_SYNC | O_CLOEXEC);
	if (fd < 0)
		homenode_fail(1, "open %s: %s; run as root inside the lab's guest", path, strerror(errno));
	p = mmap(NULL, HOMENODE_LAB_BYTES, writable ? PROT_READ | PROT_WRITE : PROT_READ, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED)
		homenode_fail(1, "map %s: %s; the file must hold %u bytes", path, strerror(errno), HOMENODE_LAB_BYTES);
	close(fd);
	lab = p;
	if (lab->magic != HOMENODE_LAB_MAGIC || lab->version != HOMENODE_LAB_VERSION)
		homenode_fail(1,
			      "map %s: magic 0x%llx version %llu is not the lab's layout; start QEMU with the matching plugin",
			      path, (unsigned long long)lab->magic, (unsigned long long)lab->version);
	if (lab->mhz == 0)
		homenode_fail(1, "map %s: mhz is 0; start QEMU with a plugin that sets the model frequency", path);
	return lab;
}

void homenode_clock_open(struct homenode_clock *c, const char *sysfs, bool writable)
{
	char base[256], dir[400];
	struct dirent *e;
	DIR *d;

	c->lab = NULL;
	c->mhz = HOMENODE_WALL_MHZ;
	c->wall_phase = 1;
	snprintf(base, sizeof(base), "%s/bus/pci/devices", sysfs);
	d = opendir(base);
	if (!d)
		return; /* no PCI bus here, so no lab either */
	while (!c->lab && (e = readdir(d))) {
		if (e->d_name[0] == '.')
			continue;
		snprintf(dir, sizeof(dir), "%s/%.100s", base, e->d_name);
		if (read_hex(dir, "vendor") == 0x1af4 && read_hex(dir, "device") == 0x1110)
			c->lab = map_lab(dir, writable);
	}
	closedir(d);
	if (c->lab)
		c->mhz = c->lab->mhz;
}

void homenode_sleep_us(uint64_t us)
{
	struct timespec t = { .tv_sec = (time_t)(us / 1000000), .tv_nsec = (long)(us % 1000000) * 1000 };

	nanosleep(&t, NULL);
}

void homenode_clock_nap(const struct homenode_clock *c, uint64_t deadline, uint64_t least_us)
{
	uint64_t now = homenode_clock_now(c), us;

	if (now >= deadline)
		return;
	us = (deadline - now) / c->mhz;
	if (us < least_us)
		us = least_us;
	homenode_sleep_us(us < HOMENODE_NAP_US ? us : HOMENODE_NAP_US);
}
