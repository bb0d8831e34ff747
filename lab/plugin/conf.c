// SPDX-License-Identifier: GPL-2.0-or-later
/* Reads what machine.Shape.ModelConf (internal/machine/shape_conf.go) prints. */
#include "model.h"
#include <string.h>

/* "path <src> <dst> <link>...": the path of the data from dst's memory to src. */
static bool conf_path(const char *args, struct homenode_conf *c)
{
	int src, dst, used, link;

	if (sscanf(args, "%d %d%n", &src, &dst, &used) != 2 || src < 0 ||
	    dst < 0 || src >= HOMENODE_MAX_NODES || dst >= HOMENODE_MAX_NODES)
		return false;
	unsigned char *n = &c->path_len[src][dst];
	for (args += used; sscanf(args, "%d%n", &link, &used) == 1; args += used) {
		if (link < 0 || link >= HOMENODE_MAX_LINKS || *n >= HOMENODE_MAX_NODES)
			return false;
		c->path[src][dst][(*n)++] = (unsigned char)link;
	}
	return *n > 0;
}

static bool conf_number(const char *key, uint64_t val, struct homenode_conf *c)
{
	const struct {
		const char *key;
		unsigned *small;
		uint64_t *big;
	} keys[] = {
		{ "mhz", &c->mhz, NULL },
		{ "time_factor", &c->time_factor, NULL },
		{ "l1", NULL, &c->l1_bytes },
		{ "l2", NULL, &c->l2_bytes },
		{ "llc", NULL, &c->llc_bytes },
		{ "l2_cycles", &c->l2_cycles, NULL },
		{ "llc_cycles", &c->llc_cycles, NULL },
		{ "stream_parallelism", &c->stream_parallelism, NULL },
		{ "mc_cycles", &c->mc_cycles, NULL },
		{ "link_cycles", &c->link_cycles, NULL },
		{ "atomic_cycles", &c->atomic_cycles, NULL },
		{ "coherence", &c->coherence, NULL },
	};
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		if (strcmp(keys[i].key, key))
			continue;
		if (keys[i].small)
			*keys[i].small = (unsigned)val;
		else
			*keys[i].big = val;
		return true;
	}
	return false;
}

static bool conf_line(const char *line, struct homenode_conf *c)
{
	unsigned a, b, d;
	unsigned long long n;
	char key[32];

	if (sscanf(line, "node %u %llu", &a, &n) == 2 && a < HOMENODE_MAX_NODES) {
		c->node_bytes[a] = n;
		c->nnode = a + 1 > c->nnode ? a + 1 : c->nnode;
		return true;
	}
	if (sscanf(line, "cpu %u %u %u", &a, &b, &d) == 3 && a < HOMENODE_MAX_CPUS && d < HOMENODE_MAX_CPUS) {
		c->cpu_node[a] = (int)b;
		c->cpu_core[a] = d;
		c->ncpu = a + 1 > c->ncpu ? a + 1 : c->ncpu;
		return b < HOMENODE_MAX_NODES;
	}
	if (sscanf(line, "fast %u %u", &a, &b) == 2 && a < HOMENODE_MAX_CPUS && b) {
		c->cpu_fast[a] = b;
		return true;
	}
	if (sscanf(line, "lat %u %u %u", &a, &b, &d) == 3 &&
	    a < HOMENODE_MAX_NODES && b < HOMENODE_MAX_NODES) {
		c->lat[a][b] = d;
		return true;
	}
	if (sscanf(line, "transfer %u %u %u", &a, &b, &d) == 3 &&
	    a < HOMENODE_MAX_NODES && b < HOMENODE_MAX_NODES) {
		c->transfer[a][b] = d;
		return true;
	}
	if (sscanf(line, "link %u %u %u", &a, &b, &d) == 3 && a < HOMENODE_MAX_LINKS) {
		c->nlink = a + 1 > c->nlink ? a + 1 : c->nlink;
		return true;
	}
	if (!strncmp(line, "path ", 5))
		return conf_path(line + 5, c);
	return sscanf(line, "%31s %llu", key, &n) == 2 && conf_number(key, n, c);
}

static bool is_power_of_two(uint64_t n)
{
	return n && !(n & (n - 1));
}

static bool cores_fit(const struct homenode_conf *c)
{
	unsigned cpus[HOMENODE_MAX_CPUS] = { 0 };
	int node[HOMENODE_MAX_CPUS];

	for (unsigned i = 0; i < c->ncpu; i++) {
		unsigned core = c->cpu_core[i];

		if (cpus[core]++ == 0)
			node[core] = c->cpu_node[i];
		if (cpus[core] > HOMENODE_THREADS || node[core] != c->cpu_node[i])
			return false;
	}
	return true;
}

static const char *conf_check(const struct homenode_conf *c)
{
	if (!c->ncpu || !c->nnode)
		return "no cpu or no node";
	if (!c->mhz || !c->stream_parallelism)
		return "mhz or stream_parallelism is zero";
	if (!is_power_of_two(c->l1_bytes) || c->l1_bytes / 64 > HOMENODE_L1_MAX ||
	    !is_power_of_two(c->l2_bytes) || !is_power_of_two(c->llc_bytes))
		return "cache sizes must be powers of two, L1 at most 256 KiB";
	if (!cores_fit(c))
		return "a core has too many CPUs, or CPUs of two nodes";
	for (unsigned i = 0; i < c->nnode; i++)
		for (unsigned j = 0; j < c->nnode; j++) {
			if (c->coherence && !c->transfer[i][j])
				return "a pair of nodes has no transfer latency";
			if (!c->lat[i][j])
				return "a pair of nodes has no latency";
			if (i != j && !c->path_len[i][j])
				return "a pair of nodes has no path";
		}
	return NULL;
}

int homenode_conf_read(FILE *f, struct homenode_conf *c, char *err, size_t len)
{
	char line[512];
	int no = 0, end = 0;

	memset(c, 0, sizeof(*c));
	while (fgets(line, sizeof(line), f)) {
		no++;
		line[strcspn(line, "\n")] = 0;
		if (no == 1) {
			if (strcmp(line, "homenode-lab 3")) {
				snprintf(err, len, "line 1: not \"homenode-lab 3\"");
				return -1;
			}
			continue;
		}
		if (!strcmp(line, "end")) {
			end = 1;
			break;
		}
		if (!conf_line(line, c)) {
			snprintf(err, len, "line %d: cannot use \"%.80s\"", no, line);
			return -1;
		}
	}
	const char *bad = end ? conf_check(c) : "no \"end\": the file was cut off";
	if (bad)
		snprintf(err, len, "%s", bad);
	return bad ? -1 : 0;
}
