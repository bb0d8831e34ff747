/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fills the page cache: reads a file or a block device, or writes a file.  The
 * kernel puts the pages where the reading thread runs, so name its CPU.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "options.h"

#define BLOCK (1u << 20)

static ssize_t transfer(int fd, void *block, uint64_t n, bool write_it)
{
	ssize_t done;

	do
		done = write_it ? write(fd, block, n) : read(fd, block, n);
	while (done < 0 && errno == EINTR);
	return done;
}

static uint64_t fill(int fd, const struct homenode_options *o)
{
	static char block[BLOCK];
	uint64_t total = 0;

	while (total < o->bytes) {
		ssize_t n = transfer(fd, block, homenode_min(BLOCK, o->bytes - total), o->write);

		if (n < 0)
			homenode_fail(1, "%s %s: %s after %" PRIu64 " bytes", o->write ? "write" : "read", o->file,
				      strerror(errno), total);
		if (n == 0)
			break;
		total += (uint64_t)n;
	}
	return total;
}

int homenode_pagecache_main(int argc, char **argv)
{
	struct homenode_options o;
	uint64_t total;
	int fd;

	homenode_options_default(&o);
	homenode_options_read(&o, HOMENODE_IN_PAGECACHE, "pagecache", argc, argv, 2);
	if (!o.file)
		homenode_fail(2, "read pagecache options: no --file; name a file or a block device");
	if (o.write && o.bytes == HOMENODE_NONE)
		homenode_fail(2, "read pagecache options: --write without --bytes; say how much to write");
	if (o.bind_cpu != HOMENODE_NONE)
		homenode_pin(o.bind_cpu);
	fd = open(o.file, o.write ? O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC : O_RDONLY | O_CLOEXEC, 0644);
	if (fd < 0)
		homenode_fail(2, "open %s: %s; name a file or a block device", o.file, strerror(errno));
	total = fill(fd, &o);
	if (o.write && fsync(fd)) /* clean pages can be dropped again */
		homenode_fail(1, "write %s: %s", o.file, strerror(errno));
	close(fd);
	printf("{\"bytes\":%" PRIu64 "}\n", total);
	homenode_output_commit(stdout, NULL);
	return 0;
}
