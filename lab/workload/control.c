/* SPDX-License-Identifier: Apache-2.0 */
/* Switches the lab's model and shows its status words. */
#include <inttypes.h>
#include <string.h>

#include "options.h"

#define CONTROL_WAIT_US 10000000 /* the longest switch seen took 320 ms; a dead plugin never answers */
#define CONTROL_POLL_US 2000

static const char *const state_names[] = { "off", "on" };

/* Index = the contract of homenode_lab.h. */
/* clang-format off */
static const char *const counter_names[] = {
	"cycles", "instructions", "loads", "stores", "l1_misses", "l2_misses", "llc_misses", "local_loads",
	"remote_loads", "local_stores", "remote_stores", "stall_cycles", "unmapped",
	"uncore_requests", "uncore_outstanding", "uncore_critical", "transfers_local", "transfers_remote", "upgrades",
	"invalidations", "atomics", "writebacks",
};
/* clang-format on */

static volatile struct homenode_lab_shared *open_lab(const struct homenode_options *o, bool writable)
{
	struct homenode_clock clock;

	homenode_clock_open(&clock, o->sysfs, writable);
	if (!clock.lab)
		homenode_fail(1, "find the lab's PCI device 1af4:1110 under %s/bus/pci/devices: none; run inside the lab's guest",
			      o->sysfs);
	return clock.lab;
}

static const char *state_name(uint64_t state)
{
	return state < 2 ? state_names[state] : "unknown";
}

static void print_head(const volatile struct homenode_lab_shared *lab)
{
	printf("{\"state\":\"%s\",\"asked\":\"%s\",\"phase\":%" PRIu64 ",\"model_cycles\":%" PRIu64
	       ",\"mhz\":%" PRIu64,
	       state_name(lab->applied), state_name(lab->state), lab->phase, lab->model_cycles, lab->mhz);
}

static void print_counters(const volatile struct homenode_lab_vcpu *v, const char *key, bool kernel_too)
{
	printf(",\"%s\":{", key);
	for (unsigned int i = 0; i < sizeof(counter_names) / sizeof(counter_names[0]); i++) {
		uint64_t n = v->counter[HOMENODE_USER][i] + (kernel_too ? v->counter[HOMENODE_KERNEL][i] : 0);

		printf("%s\"%s\":%" PRIu64, i ? "," : "", counter_names[i], n);
	}
	putchar('}');
}

static void print_vcpu(const volatile struct homenode_lab_shared *lab, unsigned int cpu, uint64_t nnode)
{
	const volatile struct homenode_lab_vcpu *v = &lab->vcpu[cpu];

	printf("%s{\"cpu\":%u,\"clock\":%" PRIu64 ",\"running\":%s,\"waits\":%" PRIu64
	       ",\"ordered\":%" PRIu64 ",\"unordered\":%" PRIu64,
	       cpu ? "," : "", cpu, v->clock, v->running ? "true" : "false", v->waits, v->ordered, v->unordered);
	print_counters(v, "total", true); /* user + kernel */
	print_counters(v, "user", false);
	putchar(',');
	homenode_json_array(stdout, "dram", v->dram, nnode);
	putchar(',');
	homenode_json_array(stdout, "writeback", v->writeback, nnode);
	putchar(',');
	homenode_json_array(stdout, "transfer", v->transfer, nnode);
	putchar('}');
}

static void print_rest(const volatile struct homenode_lab_shared *lab)
{
	uint64_t ncpu = homenode_min(lab->ncpu, HOMENODE_MAX_CPUS), nnode = homenode_min(lab->nnode, HOMENODE_MAX_NODES);
	uint64_t nlink = homenode_min(lab->nlink, HOMENODE_MAX_LINKS);

	printf(",\"time_factor\":%" PRIu64 ",\"heartbeat\":%" PRIu64 ",", lab->time_factor, lab->heartbeat);
	homenode_json_array(stdout, "mc_util_permille", lab->mc_util_permille, nnode);
	putchar(',');
	homenode_json_array(stdout, "link_util_permille", lab->link_util_permille, nlink);
	putchar(',');
	homenode_json_array(stdout, "mc_lines", lab->mc_lines, nnode);
	putchar(',');
	homenode_json_array(stdout, "link_lines", lab->link_lines, nlink);
	fputs(",\"vcpus\":[", stdout);
	for (unsigned int cpu = 0; cpu < ncpu; cpu++)
		print_vcpu(lab, cpu, nnode);
	putchar(']');
}

static void finish_output(void)
{
	fputs("}\n", stdout);
	homenode_output_commit(stdout, NULL);
}

static void wait_applied(const volatile struct homenode_lab_shared *lab, uint64_t state)
{
	for (uint64_t us = 0; lab->applied != state; us += CONTROL_POLL_US) {
		if (us >= CONTROL_WAIT_US)
			homenode_fail(1,
				      "switch the model to %s: the plugin still shows %s after 10 s (heartbeat %" PRIu64
				      "); check that QEMU runs with the plugin",
				      state_names[state], state_name(lab->applied), lab->heartbeat);
		homenode_sleep_us(CONTROL_POLL_US);
	}
}

static uint64_t parse_state(const char *text)
{
	for (uint64_t i = 0; text && i < 2; i++)
		if (!strcmp(state_names[i], text))
			return i;
	homenode_fail(2, "read control state \"%s\": unknown; use off or on", text ? text : "");
}

/*
 * A phase must lie wholly inside its state: switching on sets the state first, switching off sets
 * the phase first.
 */
int homenode_control_main(int argc, char **argv)
{
	volatile struct homenode_lab_shared *lab;
	struct homenode_options o;
	uint64_t state = parse_state(argc > 2 ? argv[2] : NULL);
	bool down;

	homenode_options_default(&o);
	homenode_options_read(&o, HOMENODE_IN_CONTROL, "control", argc, argv, 3);
	lab = open_lab(&o, true);
	down = state < lab->applied;
	if (down && o.phase != HOMENODE_NONE)
		lab->phase = o.phase;
	lab->state = state;
	wait_applied(lab, state);
	if (!down && o.phase != HOMENODE_NONE)
		lab->phase = o.phase;
	print_head(lab);
	finish_output();
	return 0;
}

int homenode_status_main(int argc, char **argv)
{
	volatile struct homenode_lab_shared *lab;
	struct homenode_options o;

	homenode_options_default(&o);
	homenode_options_read(&o, HOMENODE_IN_STATUS, "status", argc, argv, 2);
	lab = open_lab(&o, false);
	print_head(lab);
	print_rest(lab);
	finish_output();
	return 0;
}
