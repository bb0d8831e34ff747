// SPDX-License-Identifier: GPL-2.0
/* Limits by class, as ctrlmondata.c of the kernel's resctrl checks them. */
#include <linux/bitmap.h>
#include <linux/string.h>

#include "resctrl.h"

/* What a write asks for. Nothing is set before all of it is valid. */
struct wanted {
	bool ways_set[HOMENODE_MAX_NODES], bandwidth_set[HOMENODE_MAX_NODES];
	u64 ways[HOMENODE_MAX_NODES], bandwidth[HOMENODE_MAX_NODES];
};

u64 resctrl_all_ways(void)
{
	return BIT_ULL(homenode_lab->llc_ways) - 1;
}

static u64 *ways(const struct group *g, unsigned int node)
{
	return &homenode_lab->ways[g->closid][node];
}

static u64 *bandwidth(const struct group *g, unsigned int node)
{
	return &homenode_lab->throttle[g->closid][node];
}

/* Ways of other groups: the exclusive ones, or all. */
static u64 of_others(const struct group *g, unsigned int node, bool all)
{
	const struct group *other;
	u64 sum = 0;

	list_for_each_entry(other, &resctrl_controls, siblings)
		if (other != g && (all || other->exclusive))
			sum |= *ways(other, node);
	return sum;
}

/* The lowest run of a mask: the hardware wants its bits side by side (cbm_ensure_valid). */
static u64 lowest_run(u64 mask)
{
	u64 low = mask & -mask, carried = mask + low;

	return mask & ~carried;
}

/* A new class has all ways that no other has for itself (rdtgroup_init_cat), and all of the
 * bandwidth. */
int resctrl_init_limits(struct group *g)
{
	unsigned int node;

	for_each_domain(node) {
		u64 mask = lowest_run(resctrl_all_ways() & ~of_others(g, node, false));

		if (hweight64(mask) < MIN_WAYS) {
			resctrl_say("No space on L3:%d\n", node);
			return -ENOSPC;
		}
		WRITE_ONCE(*ways(g, node), mask);
		WRITE_ONCE(*bandwidth(g, node), MAX_BANDWIDTH);
	}
	return 0;
}

void resctrl_show_schemata(struct seq_file *out, const struct group *g)
{
	unsigned int node, width = DIV_ROUND_UP(homenode_lab->llc_ways, 4);
	const char *between = "";

	seq_puts(out, "    MB:");
	for_each_domain(node) {
		seq_printf(out, "%s%u=%4llu", between, node, *bandwidth(g, node));
		between = ";";
	}
	seq_puts(out, "\n    L3:");
	between = "";
	for_each_domain(node) {
		seq_printf(out, "%s%u=%0*llx", between, node, width, *ways(g, node));
		between = ";";
	}
	seq_putc(out, '\n');
}

void resctrl_show_size(struct seq_file *out, const struct group *g)
{
	unsigned int node;
	const char *between = "";

	seq_puts(out, "    MB:");
	for_each_domain(node) {
		seq_printf(out, "%s%u=%llu", between, node, *bandwidth(g, node));
		between = ";";
	}
	seq_puts(out, "\n    L3:");
	between = "";
	for_each_domain(node) {
		seq_printf(out, "%s%u=%llu", between, node, homenode_lab->llc_bytes / homenode_lab->llc_ways * hweight64(*ways(g, node)));
		between = ";";
	}
	seq_putc(out, '\n');
}

/* parse_bw() */
static int parse_bandwidth(const struct group *g, char *text, unsigned int node, struct wanted *w)
{
	unsigned long v;

	if (w->bandwidth_set[node]) {
		resctrl_say("Duplicate domain %d\n", node);
		return -EINVAL;
	}
	if (kstrtoul(text, 10, &v)) {
		resctrl_say("Non-decimal digit in MB value %s\n", text);
		return -EINVAL;
	}
	if (v < MIN_BANDWIDTH || v > MAX_BANDWIDTH) {
		resctrl_say("MB value %ld out of range [%d,%d]\n", v, MIN_BANDWIDTH, MAX_BANDWIDTH);
		return -EINVAL;
	}
	w->bandwidth[node] = roundup(v, BANDWIDTH_STEP);
	w->bandwidth_set[node] = true;
	return 0;
}

/* cbm_validate() */
static int check_ways(const char *text, unsigned long *v)
{
	if (kstrtoul(text, 16, v)) {
		resctrl_say("Non-hex character in the mask %s\n", text);
		return -EINVAL;
	}
	if (!*v || *v > resctrl_all_ways()) {
		resctrl_say("Mask out of range\n");
		return -EINVAL;
	}
	if (lowest_run(*v) != *v) {
		resctrl_say("The mask %lx has non-consecutive 1-bits\n", *v);
		return -EINVAL;
	}
	if (hweight64(*v) < MIN_WAYS) {
		resctrl_say("Need at least %d bits in the mask\n", MIN_WAYS);
		return -EINVAL;
	}
	return 0;
}

/* parse_cbm() */
static int parse_ways(const struct group *g, char *text, unsigned int node, struct wanted *w)
{
	unsigned long v;

	if (w->ways_set[node]) {
		resctrl_say("Duplicate domain %d\n", node);
		return -EINVAL;
	}
	if (check_ways(text, &v))
		return -EINVAL;
	if (v & of_others(g, node, false)) {
		resctrl_say("Overlaps with exclusive group\n");
		return -EINVAL;
	}
	if (g->exclusive && v & of_others(g, node, true)) {
		resctrl_say("Overlaps with other group\n");
		return -EINVAL;
	}
	w->ways[node] = v;
	w->ways_set[node] = true;
	return 0;
}

typedef int parser(const struct group *g, char *text, unsigned int node, struct wanted *w);

/* parse_line(): "0=ffff;1=00ff" */
static int parse_domains(const struct group *g, char *line, parser *parse, struct wanted *w)
{
	while (line && *line) {
		char *value = strsep(&line, ";"), *id = strsep(&value, "=");
		unsigned long node;

		if (!value || kstrtoul(id, 10, &node)) {
			resctrl_say("Missing '=' or non-numeric domain\n");
			return -EINVAL;
		}
		if (node >= homenode_lab->nnode || !resctrl_is_domain(node) || parse(g, strim(value), node, w))
			return -EINVAL;
	}
	return 0;
}

/* rdtgroup_parse_resource() */
static int parse_resource(const struct group *g, char *line, struct wanted *w)
{
	char *name = strim(strsep(&line, ":"));

	if (!line) {
		resctrl_say("Missing ':'\n");
		return -EINVAL;
	}
	if (!*line) {
		resctrl_say("Missing '%s' value\n", name);
		return -EINVAL;
	}
	if (!strcmp(name, "MB"))
		return parse_domains(g, line, parse_bandwidth, w);
	if (!strcmp(name, "L3"))
		return parse_domains(g, line, parse_ways, w);
	resctrl_say("Unknown or unsupported resource name '%s'\n", name);
	return -EINVAL;
}

static void set(const struct group *g, const struct wanted *w)
{
	unsigned int node;

	for_each_domain(node) {
		if (w->ways_set[node])
			WRITE_ONCE(*ways(g, node), w->ways[node]);
		if (w->bandwidth_set[node])
			WRITE_ONCE(*bandwidth(g, node), w->bandwidth[node]);
	}
}

int resctrl_set_schemata(struct group *g, char *text)
{
	struct wanted w = {};
	char *line;

	resctrl_say_nothing();
	while ((line = strsep(&text, "\n")) != NULL)
		if (parse_resource(g, line, &w))
			return -EINVAL;
	set(g, &w);
	return 0;
}

static char usage_of(u64 way, u64 shared, u64 exclusive)
{
	if (exclusive & way)
		return 'E';
	return shared & way ? 'S' : '0';
}

/* rdt_bit_usage_show() */
void resctrl_show_bit_usage(struct seq_file *out)
{
	const char *between = "";
	unsigned int node;
	u64 way;

	for_each_domain(node) {
		u64 exclusive = of_others(NULL, node, false), shared = of_others(NULL, node, true) & ~exclusive;

		seq_printf(out, "%s%u=", between, node);
		for (way = BIT_ULL(homenode_lab->llc_ways - 1); way; way >>= 1)
			seq_putc(out, usage_of(way, shared, exclusive));
		between = ";";
	}
	seq_putc(out, '\n');
}

/* rdtgroup_mode_write() */
int resctrl_set_mode(struct group *g, const char *text)
{
	unsigned int node;

	resctrl_say_nothing();
	if (!strcmp(text, "shareable")) {
		g->exclusive = false;
		return 0;
	}
	if (strcmp(text, "exclusive")) {
		resctrl_say("Unknown or unsupported mode\n");
		return -EINVAL;
	}
	for_each_domain(node)
		if (*ways(g, node) & of_others(g, node, true)) {
			resctrl_say("Schemata overlaps\n");
			return -EINVAL;
		}
	g->exclusive = true;
	return 0;
}
