// SPDX-License-Identifier: GPL-2.0-or-later
#include "model.h"
#include <stdlib.h>
#include <string.h>

struct homenode_model homenode_model;

/* "path <src> <dst> <link>...": the way of the data from dst's memory to src. */
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
	if (sscanf(line, "cpu %u %u %u", &a, &b, &d) == 3 && a < HOMENODE_MAX_CPUS) {
		c->cpu_node[a] = (int)b;
		c->cpu_core[a] = d;
		c->ncpu = a + 1 > c->ncpu ? a + 1 : c->ncpu;
		return b < HOMENODE_MAX_NODES;
	}
	if (sscanf(line, "housekeeping %u", &a) == 1 && a < HOMENODE_MAX_CPUS) {
		c->housekeeping[a] = true;
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

static const char *conf_check(const struct homenode_conf *c)
{
	if (!c->ncpu || !c->nnode)
		return "no cpu or no node";
	if (!c->mhz || !c->stream_parallelism)
		return "mhz or stream_parallelism is zero";
	if (!is_power_of_two(c->l1_bytes) || c->l1_bytes / 64 > HOMENODE_L1_MAX ||
	    !is_power_of_two(c->l2_bytes) || !is_power_of_two(c->llc_bytes))
		return "cache sizes must be powers of two, L1 at most 256 KiB";
	for (unsigned i = 0; i < c->nnode; i++)
		for (unsigned j = 0; j < c->nnode; j++) {
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
			if (strcmp(line, "homenode-lab 2")) {
				snprintf(err, len, "line 1: not \"homenode-lab 2\"");
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

static int cache_init(struct homenode_cache *c, uint64_t bytes, unsigned ways)
{
	uint64_t sets = bytes >> HOMENODE_LINE_SHIFT;

	sets = sets > ways ? sets / ways : 1;
	c->ways = ways;
	c->set_mask = sets - 1;
	c->tags = calloc(sets * ways, sizeof(*c->tags));
	c->next = calloc(sets, 1);
	return c->tags && c->next ? 0 : -1;
}

int homenode_model_init(struct homenode_model *m, struct homenode_lab_shared *s)
{
	const struct homenode_conf *c = &m->conf;
	uint64_t sum = 0;

	m->shared = s;
	m->l1_mask = (c->l1_bytes >> HOMENODE_LINE_SHIFT) - 1;
	for (unsigned n = 0; n < c->nnode; n++) {
		/* QEMU 7.2 reports RAM block offset + offset + the offset of the
		 * backend in the machine's RAM container: with the node backends
		 * created first and in order, both offsets are the sum of the
		 * sizes before.  The guest checks this at start (touch). */
		m->range[n].base = 2 * sum;
		m->range[n].end = 2 * sum + c->node_bytes[n];
		sum += c->node_bytes[n];
		if (cache_init(&m->llc[n], c->llc_bytes, HOMENODE_LLC_WAYS))
			return -1;
	}
	for (unsigned i = 0; i < c->ncpu; i++) {
		struct homenode_vcpu *v = &m->vcpu[i];

		v->pub = &s->vcpu[i];
		v->ring = s->ring[i];
		v->ctr = v->pub->counter[HOMENODE_KERNEL];
		v->node = c->cpu_node[i];
		v->daemons = c->housekeeping[i];
		if (cache_init(&v->l2, c->l2_bytes, HOMENODE_L2_WAYS))
			return -1;
	}
	memcpy(m->lat_now, c->lat, sizeof(c->lat));
	return 0;
}

/* Look a line up and bring it in if it was not there. */
static bool cache_hit(struct homenode_cache *c, uint64_t line)
{
	uint64_t set = line & c->set_mask;
	uint64_t *tags = c->tags + set * c->ways;

	for (unsigned w = 0; w < c->ways; w++)
		if (tags[w] == line + 1)
			return true;
	unsigned char w = c->next[set];
	tags[w] = line + 1;
	c->next[set] = (unsigned char)((w + 1) % c->ways);
	return false;
}

static int node_of(const struct homenode_model *m, uint64_t phys)
{
	for (unsigned n = 0; n < m->conf.nnode; n++)
		if (phys >= m->range[n].base && phys < m->range[n].end)
			return (int)n;
	return -1;
}

/* Is this L1 miss the next line of a sequential run of at least three? */
static bool stream_follow(struct homenode_vcpu *v, uint64_t line)
{
	for (unsigned i = 0; i < HOMENODE_STREAMS; i++) {
		if (v->stream[i] + 1 != line)
			continue;
		v->stream[i] = line;
		if (v->stream_run[i] < 255)
			v->stream_run[i]++;
		return v->stream_run[i] >= 2;
	}
	unsigned i = v->stream_next++ % HOMENODE_STREAMS;
	v->stream[i] = line;
	v->stream_run[i] = 0;
	return false;
}

static unsigned hit(struct homenode_vcpu *v, unsigned where, unsigned home, unsigned latency)
{
	v->access = HOMENODE_ACCESS(where, home, latency);
	return latency;
}

/* Cycles that an access of v exposes beyond L1, and its counts.
 * 1. The private L2, then the LLC of the vCPU's node.
 * 2. DRAM at the page's home node: idle latency by the pair of nodes plus
 *    queueing at the controller and on every link of the way.
 * 3. Misses of a sequential stream, and stores (which wait in the store
 *    buffer), overlap: only 1/parallelism of the latency is exposed. */
static unsigned memory_access(struct homenode_model *m, struct homenode_vcpu *v,
			      uint64_t phys, bool store, bool overlaps)
{
	const struct homenode_conf *c = &m->conf;
	uint64_t line = phys >> HOMENODE_LINE_SHIFT;

	if (cache_hit(&v->l2, line))
		return hit(v, HOMENODE_HIT_L2, 0xff, c->l2_cycles);
	v->ctr[HOMENODE_L2_MISSES]++;
	int home = node_of(m, phys);
	if (home < 0) {
		v->ctr[HOMENODE_UNMAPPED]++;
		return hit(v, HOMENODE_HIT_UNKNOWN, 0xff, c->llc_cycles);
	}
	if (cache_hit(&m->llc[v->node], line))
		return hit(v, HOMENODE_HIT_LLC, (unsigned)home, c->llc_cycles);
	v->ctr[HOMENODE_LLC_MISSES]++;
	v->ctr[HOMENODE_LOCAL_LOADS + (home != v->node) + 2 * store]++;
	v->pub->dram[home]++;
	unsigned lat = __atomic_load_n(&m->lat_now[v->node][home], __ATOMIC_RELAXED);
	hit(v, home == v->node ? HOMENODE_HIT_LOCAL : HOMENODE_HIT_REMOTE, (unsigned)home, lat);
	return overlaps ? lat / c->stream_parallelism : lat;
}

void homenode_model_miss(struct homenode_model *m, struct homenode_vcpu *v,
			 uint64_t line, uint64_t phys, bool store)
{
	v->ctr[HOMENODE_L1_MISSES]++;
	bool overlaps = stream_follow(v, line) || store;
	unsigned stall = memory_access(m, v, phys, store, overlaps);

	v->ctr[HOMENODE_STALL_CYCLES] += stall;
	v->ctr[HOMENODE_CYCLES] += stall;
	v->clock += stall;
}

/* M/D/1: mean wait = s * rho / (2 (1 - rho)); rho is smoothed, so that the
 * closed loop (latency throttles demand) settles instead of swinging. */
static double queue_wait(double *util, uint64_t lines, unsigned service, uint64_t cycles, bool paced)
{
	const double smooth = 0.2, cap = 0.95;
	double rho = paced ? (double)lines * service / (double)cycles : 0;

	*util += smooth * ((rho < cap ? rho : cap) - *util);
	return service * *util / (2 * (1 - *util));
}

/* Cycles of `cycles` in which a controller served; it cannot do more than serve. */
static uint64_t busy_cycles(uint64_t lines, unsigned service, uint64_t cycles)
{
	return lines * service < cycles ? lines * service : cycles;
}

void homenode_model_queues(struct homenode_model *m, uint64_t cycles, bool paced)
{
	const struct homenode_conf *c = &m->conf;
	struct homenode_lab_shared *s = m->shared;
	uint64_t mc[HOMENODE_MAX_NODES] = { 0 }, link[HOMENODE_MAX_LINKS] = { 0 };
	double mc_wait[HOMENODE_MAX_NODES], link_wait[HOMENODE_MAX_LINKS];

	for (unsigned i = 0; i < c->ncpu; i++) {
		int src = c->cpu_node[i];

		for (unsigned dst = 0; dst < c->nnode; dst++) {
			uint64_t n = __atomic_load_n(&s->vcpu[i].dram[dst], __ATOMIC_RELAXED);

			mc[dst] += n;
			for (unsigned k = 0; k < c->path_len[src][dst]; k++)
				link[c->path[src][dst][k]] += n;
		}
	}
	for (unsigned n = 0; n < c->nnode; n++) {
		mc_wait[n] = queue_wait(&m->mc_util[n], mc[n] - m->mc_seen[n], c->mc_cycles, cycles, paced);
		if (paced)
			s->mc_busy_cycles[n] += busy_cycles(mc[n] - m->mc_seen[n], c->mc_cycles, cycles);
		m->mc_seen[n] = s->mc_lines[n] = mc[n];
		s->mc_util_permille[n] = (uint64_t)(1000 * m->mc_util[n]);
	}
	if (paced) /* unpaced, demand per model cycle means nothing */
		s->mc_ticks += cycles;
	for (unsigned l = 0; l < c->nlink; l++) {
		link_wait[l] = queue_wait(&m->link_util[l], link[l] - m->link_seen[l], c->link_cycles, cycles, paced);
		m->link_seen[l] = s->link_lines[l] = link[l];
		s->link_util_permille[l] = (uint64_t)(1000 * m->link_util[l]);
	}
	for (unsigned src = 0; src < c->nnode; src++)
		for (unsigned dst = 0; dst < c->nnode; dst++) {
			double lat = c->lat[src][dst] + mc_wait[dst];

			for (unsigned k = 0; k < c->path_len[src][dst]; k++)
				lat += link_wait[c->path[src][dst][k]];
			__atomic_store_n(&m->lat_now[src][dst], (unsigned)lat, __ATOMIC_RELAXED);
		}
}
