/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "options.h"

#define LOADS   (HOMENODE_IN_CHASE | HOMENODE_IN_STREAM | HOMENODE_IN_RAO | HOMENODE_IN_SHARE | HOMENODE_IN_SPIN | \
		 HOMENODE_IN_HANDOFF)
#define MEETS   (LOADS & ~HOMENODE_IN_HANDOFF)
#define WORKS   (LOADS | HOMENODE_IN_SERVER | HOMENODE_IN_VICTIM)
#define RUNS    (WORKS | HOMENODE_IN_HOLD)
#define REGIONS (RUNS & ~HOMENODE_IN_SPIN & ~HOMENODE_IN_SHARE)

/* 200 register instructions and 8 loads of 220 cycles: a unit with all memory local, LLC missed. */
#define LOCAL_LOAD_CYCLES 220

enum kind { FLAG,
	    COUNT,
	    SIZE,
	    REAL,
	    TEXT,
	    RANGE,
	    THP,
	    TOUCHER,
	    LIST,
};

static const struct option {
	const char *name;
	enum kind kind;
	size_t offset;
	unsigned int modes;
	double low, high; /* of COUNT, SIZE, REAL */
} options[] = {
#define AT(field) offsetof(struct homenode_options, field)
	{ "name", TEXT, AT(name), RUNS, 0, 0 },
	{ "out", TEXT, AT(out), RUNS | HOMENODE_IN_TOUCH, 0, 0 },
	{ "ready", TEXT, AT(ready), RUNS, 0, 0 },
	{ "count", TEXT, AT(count), RUNS, 0, 0 },
	{ "sysfs", TEXT, AT(sysfs), ~0u, 0, 0 },
	{ "perf", TEXT, AT(perf), LOADS | HOMENODE_IN_TOUCH, 0, 0 },
	{ "threads", COUNT, AT(threads), RUNS, 1, HOMENODE_MAX_THREADS },
	{ "workers", COUNT, AT(threads), RUNS, 1, HOMENODE_MAX_THREADS },
	{ "seed", COUNT, AT(seed), RUNS, 0, 1.8e19 },
	{ "ws", SIZE, AT(ws_bytes), REGIONS, HOMENODE_PAGE, 1e15 },
	{ "extra", SIZE, AT(extra_bytes), RUNS, 0, 1e15 },
	{ "thp", THP, AT(thp), RUNS, 0, 0 },
	{ "touch", TOUCHER, AT(touch), RUNS, 0, 0 },
	{ "bind-mem", COUNT, AT(bind_mem), RUNS, 0, 1023 },
	{ "interleave", LIST, AT(interleave), RUNS, 0, 0 },
	{ "bind-cpu", COUNT, AT(bind_cpu), RUNS | HOMENODE_IN_TOUCH | HOMENODE_IN_PAGECACHE, 0, 1e9 },
	{ "cpus", LIST, AT(cpus), RUNS, 0, 0 },
	{ "file", TEXT, AT(file), (RUNS & ~HOMENODE_IN_SPIN) | HOMENODE_IN_PAGECACHE, 0, 0 },
	{ "open", TEXT, AT(open), HOMENODE_IN_HOLD, 0, 0 },
	{ "fork-when", TEXT, AT(fork_when), HOMENODE_IN_HOLD, 0, 0 },
	{ "shared-bytes", SIZE, AT(shared_bytes), HOMENODE_IN_VICTIM, HOMENODE_PAGE, 1e15 },
	{ "loads", COUNT, AT(loads), HOMENODE_IN_VICTIM, 1, 1e9 },
	{ "file-every", COUNT, AT(file_every), HOMENODE_IN_VICTIM, 1, 1e9 },
	{ "map-every", COUNT, AT(map_every), HOMENODE_IN_VICTIM, 1, 1e9 },
	{ "bytes", SIZE, AT(bytes), HOMENODE_IN_PAGECACHE, 1, 1e15 },
	{ "ops", COUNT, AT(ops), WORKS, 1, 1e18 },
	{ "seconds", REAL, AT(seconds), RUNS, 1e-6, 1e9 },
	{ "vm", FLAG, AT(vm), LOADS, 0, 0 },
	{ "hold", COUNT, AT(hold), RUNS, 0, 1e18 },
	{ "start-phase", COUNT, AT(hold), RUNS, 0, 1e18 },
	{ "warm-laps", COUNT, AT(warm_laps), LOADS, 0, 1e6 },
	{ "shared", FLAG, AT(shared), HOMENODE_IN_CHASE, 0, 0 },
	{ "write", FLAG, AT(write), HOMENODE_IN_STREAM | HOMENODE_IN_SHARE | HOMENODE_IN_HANDOFF | HOMENODE_IN_PAGECACHE, 0, 0 },
	{ "triad", FLAG, AT(triad), HOMENODE_IN_STREAM, 0, 0 },
	{ "pause", FLAG, AT(pause), HOMENODE_IN_SPIN, 0, 0 },
	{ "barrier", COUNT, AT(barrier), MEETS, 1, 1e15 },
	{ "sharing", SIZE, AT(sharing_bytes), HOMENODE_IN_RAO | HOMENODE_IN_SHARE, HOMENODE_LINE, 1e12 },
	{ "share-every", COUNT, AT(share_every), HOMENODE_IN_RAO, 1, 1e9 },
	{ "closed", FLAG, AT(closed), HOMENODE_IN_SERVER, 0, 0 },
	{ "queue", COUNT, AT(queue), HOMENODE_IN_SERVER, 1, 1e7 },
	{ "rate", REAL, AT(rate), HOMENODE_IN_SERVER, 1e-6, 1e9 },
	{ "think-us", REAL, AT(think_us), HOMENODE_IN_SERVER, 0, 1e12 },
	{ "short-share", REAL, AT(short_share), HOMENODE_IN_SERVER, 0, 1 },
	{ "short-us", RANGE, AT(short_us), HOMENODE_IN_SERVER, 0, 0 },
	{ "long-us", RANGE, AT(long_us), HOMENODE_IN_SERVER, 0, 0 },
	{ "loads-per-unit", COUNT, AT(loads_per_unit), HOMENODE_IN_SERVER, 0, 1e6 },
	{ "alu-per-unit", COUNT, AT(alu_per_unit), HOMENODE_IN_SERVER, 0, 1e6 },
	{ "unit-cycles", COUNT, AT(unit_cycles), HOMENODE_IN_SERVER, 1, 1e12 },
	{ "time-factor", REAL, AT(time_factor), HOMENODE_IN_SERVER, 1e-6, 1e6 },
	{ "list-requests", COUNT, AT(list_requests), HOMENODE_IN_SERVER, 1, 1e9 },
	{ "node", COUNT, AT(node), HOMENODE_IN_TOUCH, 0, HOMENODE_MAX_NODES - 1 },
	{ "pages", COUNT, AT(pages), HOMENODE_IN_TOUCH, 1, 1e9 },
	{ "phase", COUNT, AT(phase), HOMENODE_IN_CONTROL, 0, 1e18 },
#undef AT
};

void homenode_options_default(struct homenode_options *o)
{
	*o = (struct homenode_options){
		.sysfs = "/sys",
		.threads = 1,
		.seed = 1,
		.ws_bytes = 8 << 20,
		.sharing_bytes = 64 << 10,
		.bind_mem = HOMENODE_NONE,
		.bind_cpu = HOMENODE_NONE,
		.ops = HOMENODE_NONE,
		.hold = HOMENODE_NONE,
		.warm_laps = HOMENODE_NONE,
		.share_every = 8,
		.queue = HOMENODE_NONE,
		.loads_per_unit = 8,
		.alu_per_unit = 200,
		.unit_cycles = HOMENODE_NONE,
		.short_share = 0.8,
		.short_us = { 20, 100 },
		.long_us = { 400, 10000 },
		.node = HOMENODE_NONE,
		.pages = 1024,
		.phase = HOMENODE_NONE,
		.bytes = HOMENODE_NONE,
		.loads = 64,
		.file_every = 8,
	};
}

static uint64_t parse_count(const struct option *d, const char *text)
{
	uint64_t v;
	char *end;

	errno = 0;
	v = strtoull(text, &end, 10);
	if (text[0] < '0' || text[0] > '9' || *end || errno || (double)v < d->low || (double)v > d->high)
		homenode_fail(2, "parse --%s \"%s\": not a whole number from %.0f to %.10g; correct it", d->name, text, d->low,
			      d->high);
	return v;
}

/* A shift for "", k, m, g, KiB, MiB, GiB; -1 = no such suffix. */
static int size_shift(const char *suffix)
{
	static const char *const names[][3] = { { "k", "K", "KiB" }, { "m", "M", "MiB" }, { "g", "G", "GiB" } };

	if (!*suffix)
		return 0;
	for (int i = 0; i < 3; i++)
		for (int j = 0; j < 3; j++)
			if (!strcmp(suffix, names[i][j]))
				return 10 * (i + 1);
	return -1;
}

static uint64_t parse_size(const struct option *d, const char *text)
{
	uint64_t v;
	char *end;
	int shift;

	errno = 0;
	v = strtoull(text, &end, 10);
	shift = size_shift(end);
	if (text[0] < '0' || text[0] > '9' || errno || shift < 0 || ldexp((double)v, shift) < d->low ||
	    ldexp((double)v, shift) > d->high)
		homenode_fail(2, "parse --%s \"%s\": not a size of at least %.0f bytes; write e.g. 8MiB, 512KiB or 65536",
			      d->name, text, d->low);
	return v << shift;
}

static double parse_real(const struct option *d, const char *text)
{
	char *end;
	double v = strtod(text, &end);

	if (end == text || *end || !(v >= d->low && v <= d->high))
		homenode_fail(2, "parse --%s \"%s\": not a number from %g to %g; correct it", d->name, text, d->low, d->high);
	return v;
}

/* "20:100", µs */
static struct homenode_range parse_range(const struct option *d, const char *text)
{
	struct homenode_range r;
	char *end;

	r.low = strtod(text, &end);
	if (end != text && *end == ':') {
		const char *second = end + 1;

		r.high = strtod(second, &end);
		if (end != second && !*end && r.low > 0 && r.high >= r.low && r.high <= 1e12)
			return r;
	}
	homenode_fail(2, "parse --%s \"%s\": not a range of microseconds; write LOW:HIGH, e.g. 20:100", d->name, text);
}

/* "0,2-3", as the kernel writes lists; the order is kept. */
static struct homenode_list parse_list(const struct option *d, const char *text)
{
	struct homenode_list list = { 0 };
	const char *p = text;

	for (;;) {
		unsigned long low, high;
		char *end;

		low = high = strtoul(p, &end, 10);
		if (*p >= '0' && *p <= '9' && *end == '-' && end[1] >= '0' && end[1] <= '9')
			high = strtoul(end + 1, &end, 10);
		if (*p < '0' || *p > '9' || (*end && *end != ',') || high < low || high > UINT16_MAX ||
		    list.n + (high - low) >= HOMENODE_MAX_THREADS)
			homenode_fail(2, "parse --%s \"%s\": not a list; write e.g. 0,2-3", d->name, text);
		while (low <= high)
			list.id[list.n++] = (uint16_t)low++;
		if (!*end)
			return list;
		p = end + 1;
	}
}

static uint64_t parse_word(const struct option *d, const char *text, const char *const *words, const char *list)
{
	for (uint64_t i = 0; words[i]; i++)
		if (!strcmp(words[i], text))
			return i;
	homenode_fail(2, "parse --%s \"%s\": unknown word; use %s", d->name, text, list);
}

static void store(struct homenode_options *o, const struct option *d, const char *text)
{
	static const char *const thp[] = { "default", "on", "off", NULL }, *const touch[] = { "main", "worker", NULL };
	void *at = (char *)o + d->offset;

	switch (d->kind) {
	case FLAG: *(uint64_t *)at = 1; break;
	case COUNT: *(uint64_t *)at = parse_count(d, text); break;
	case SIZE: *(uint64_t *)at = parse_size(d, text); break;
	case REAL: *(double *)at = parse_real(d, text); break;
	case TEXT: *(const char **)at = text; break;
	case RANGE: *(struct homenode_range *)at = parse_range(d, text); break;
	case LIST: *(struct homenode_list *)at = parse_list(d, text); break;
	case THP: *(uint64_t *)at = parse_word(d, text, thp, "on, off or default"); break;
	case TOUCHER: *(uint64_t *)at = parse_word(d, text, touch, "main or worker"); break;
	}
}

static const struct option *find(const char *name, size_t length)
{
	for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++)
		if (strlen(options[i].name) == length && !memcmp(options[i].name, name, length))
			return &options[i];
	return NULL;
}

void homenode_options_read(struct homenode_options *o, unsigned int mode, const char *mode_name, int argc, char **argv,
			   int first)
{
	for (int i = first; i < argc; i++) {
		const char *arg = argv[i], *value = NULL;
		size_t length = strcspn(arg, "=");
		const struct option *d = NULL;

		if (!strncmp(arg, "--", 2))
			d = find(arg + 2, length - 2);
		if (!d)
			homenode_fail(2, "read argument \"%s\": unknown option; see homenode-load --help", arg);
		if (!(d->modes & mode))
			homenode_fail(2, "read option --%s: it does not belong to %s; see homenode-load --help", d->name,
				      mode_name);
		if (arg[length] == '=')
			value = arg + length + 1;
		else if (d->kind != FLAG && i + 1 < argc)
			value = argv[++i];
		if ((d->kind == FLAG) != (value == NULL))
			homenode_fail(2, "read option --%s: it takes %s value; correct it", d->name,
				      d->kind == FLAG ? "no" : "a");
		store(o, d, value);
	}
}

static void check(struct homenode_options *o, const struct homenode_mode *mode)
{
	if (o->bind_mem != HOMENODE_NONE && o->interleave.n)
		homenode_fail(2, "read options --bind-mem and --interleave: they exclude each other; choose one");
	if (o->write && o->triad)
		homenode_fail(2, "read options --write and --triad: they exclude each other; choose one");
	if (mode == &homenode_server && !o->closed && o->rate <= 0)
		homenode_fail(2, "read server options: the open loop needs --rate; give requests per model-second, or --closed");
	if (o->closed && o->rate > 0)
		homenode_fail(2, "read options --rate and --closed: a closed loop has no rate; use --think-us");
	if (mode == &homenode_server && !o->closed && o->think_us > 0)
		homenode_fail(2, "read option --think-us: it belongs to the closed loop; add --closed");
	if (mode == &homenode_spin)
		o->ws_bytes = sizeof(((struct homenode_worker *)0)->table);
	if (mode == &homenode_share)
		o->ws_bytes = o->sharing_bytes;
	if (o->warm_laps == HOMENODE_NONE)
		o->warm_laps = o->ops != HOMENODE_NONE || o->perf ? 1 : 0;
	if (o->unit_cycles == HOMENODE_NONE)
		o->unit_cycles = o->loads_per_unit * LOCAL_LOAD_CYCLES + o->alu_per_unit;
	if (o->unit_cycles == 0)
		homenode_fail(2, "read --loads-per-unit and --alu-per-unit: a unit of no work; make one of them positive");
}

const struct homenode_mode *homenode_options_parse(struct homenode_options *o, int argc, char **argv)
{
	static const struct homenode_mode *const modes[] = { &homenode_chase, &homenode_stream, &homenode_rao,
							     &homenode_spin, &homenode_server,
							     &homenode_share, &homenode_hold, &homenode_handoff,
							     &homenode_victim };

	for (unsigned int i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
		if (strcmp(argv[1], modes[i]->name))
			continue;
		homenode_options_default(o);
		homenode_options_read(o, 1u << i, argv[1], argc, argv, 2);
		check(o, modes[i]);
		return modes[i];
	}
	homenode_fail(2, "read mode \"%s\": unknown; use chase, stream, rao, share, spin, server, hold, handoff, victim, touch, pagecache, pages, patch, peer, drop, control or status",
		      argv[1]);
}
