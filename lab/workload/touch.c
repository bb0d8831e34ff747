/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calibration of the plugin's node map: read lines that lie on a known node
 * and see which node is credited.  (qemu_plugin_hwaddr_phys_addr of QEMU 7.2
 * does not return the guest's physical address, so the map must be checked.)
 */
#include <inttypes.h>
#include <sched.h>
#include <string.h>

#include "options.h"

/* The LLC replaces at random: after 128 lines came into 16 ways, one way in 4,000 still has its
 * old line. */
#define FLUSH_LLCS 8

struct machine {
	uint64_t nodes, llc_bytes;
};

static struct machine read_machine(const struct homenode_options *o)
{
	struct homenode_clock clock;

	homenode_clock_open(&clock, o->sysfs, false);
	if (!clock.lab)
		homenode_fail(1, "find the lab's PCI device 1af4:1110 under %s/bus/pci/devices: none; run inside the lab's guest",
			      o->sysfs);
	if (clock.lab->nnode == 0 || clock.lab->nnode > HOMENODE_MAX_NODES)
		homenode_fail(1, "read the lab's node count: %" PRIu64 " is not in 1..%d; start QEMU with the matching plugin",
			      clock.lab->nnode, HOMENODE_MAX_NODES);
	if (clock.lab->llc_bytes == 0)
		homenode_fail(1, "read the lab's size of an LLC: it is 0; start QEMU with the matching plugin");
	return (struct machine){ .nodes = clock.lab->nnode, .llc_bytes = clock.lab->llc_bytes };
}

/* Bound and without THP, so that the frame does not depend on chance. */
static struct homenode_region map_bound(const struct homenode_options *o, uint64_t bytes)
{
	struct homenode_region r = homenode_region_map(o, bytes);

	homenode_touch_slice(&r, 0, 1);
	return r;
}

static void read_lines(const struct homenode_region *r)
{
	const uint8_t *p = r->base, *end = p + r->lines * HOMENODE_LINE;

	for (; p < end; p += HOMENODE_LINE)
		(void)*(const volatile uint64_t *)p;
}

/* "dram0,dram1,…" for all nodes: the report lists every node, so that an access credited to the
 * wrong node shows. */
static void plan_nodes(struct homenode_perf_plan *plan, uint64_t nnode)
{
	char text[HOMENODE_MAX_NODES * 8] = "", *p = text;

	for (uint64_t i = 0; i < nnode; i++)
		p += sprintf(p, "%sdram%u", i ? "," : "", (unsigned int)i);
	homenode_perf_parse(plan, text);
}

static void print_result(FILE *f, const struct homenode_options *o, const struct homenode_perf *perf)
{
	fprintf(f, "{\"node\":%" PRIu64 ",\"lines\":%" PRIu64 ",\"dram\":[", o->node,
		o->pages * (HOMENODE_PAGE / HOMENODE_LINE));
	for (unsigned int i = 0; i < perf->n; i++) {
		if (perf->whole[i])
			fprintf(f, "%s%" PRIu64, i ? "," : "", perf->value[i]);
		else
			fprintf(f, "%snull", i ? "," : "");
	}
	fputs("]}\n", f);
}

int homenode_touch_main(int argc, char **argv)
{
	struct homenode_region subject, flush;
	struct machine machine;
	struct homenode_perf_plan plan;
	struct homenode_options o;
	struct homenode_perf perf;
	FILE *f;

	homenode_options_default(&o);
	homenode_options_read(&o, HOMENODE_IN_TOUCH, "touch", argc, argv, 2);
	if (o.node == HOMENODE_NONE)
		homenode_fail(2, "read touch options: no --node; name the node to read memory of");
	if (o.perf && strncmp(o.perf, "dram", 4))
		homenode_fail(2, "parse --perf \"%s\": touch counts DRAM by node only; use dram or leave it out", o.perf);
	machine = read_machine(&o);
	plan_nodes(&plan, machine.nodes);
	o.bind_mem = o.node;
	o.thp = HOMENODE_THP_OFF;
	/* on one CPU: a line that another CPU has modified comes from its cache, not from DRAM */
	homenode_pin(o.bind_cpu != HOMENODE_NONE ? o.bind_cpu : (uint64_t)sched_getcpu());
	homenode_perf_open(&perf, &plan);
	subject = map_bound(&o, o.pages * HOMENODE_PAGE);
	flush = map_bound(&o, FLUSH_LLCS * machine.llc_bytes);
	read_lines(&flush); /* drives the subject's lines out of every cache */
	homenode_perf_enable(&perf);
	read_lines(&subject);
	homenode_perf_disable(&perf);
	homenode_perf_finish(&perf);
	f = homenode_output_open(o.out);
	print_result(f, &o, &perf);
	homenode_output_commit(f, o.out);
	return 0;
}
