/* SPDX-License-Identifier: Apache-2.0 */
/* Table-driven options: a name, a kind, a place, and the modes it belongs to. */
#ifndef HOMENODE_OPTIONS_H
#define HOMENODE_OPTIONS_H

#include "load.h"

enum {
	HOMENODE_IN_CHASE = 1,
	HOMENODE_IN_STREAM = 2,
	HOMENODE_IN_RAO = 4,
	HOMENODE_IN_SPIN = 8,
	HOMENODE_IN_SERVER = 16,
	HOMENODE_IN_SHARE = 32,
	HOMENODE_IN_HOLD = 64,
	HOMENODE_IN_HANDOFF = 128,
	HOMENODE_IN_VICTIM = 256,
	HOMENODE_IN_TOUCH = 512,
	HOMENODE_IN_CONTROL = 1024,
	HOMENODE_IN_STATUS = 2048,
	HOMENODE_IN_PAGECACHE = 4096,
};

void homenode_options_default(struct homenode_options *o);
/* Reads argv[first..]; `mode` is one of the bits above, `mode_name` is for messages. */
void homenode_options_read(struct homenode_options *o, unsigned int mode, const char *mode_name, int argc, char **argv,
			   int first);

#endif
