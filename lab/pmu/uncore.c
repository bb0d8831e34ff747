// SPDX-License-Identifier: GPL-2.0
/*
 * The memory controllers' PMUs: the lab's are uncore_imc_<node>, another CPU's have its names and
 * numbers (personalities.c). They count per CPU and never per task, as on hardware.
 *
 * Lines read and written back are summed from the vCPUs' own counts and exact at any moment.
 * Clock and busy cycles are as of the model's last update of its queues (at most some 25,000
 * cycles ago). Events here never share a counter.
 * Not supported: sampling.
 */
#include <linux/device.h>

#include "pmu.h"

#define ON_EVERY_NODE (-1)
#define CONTROLLERS   (12 * HOMENODE_MAX_NODES) /* at most: Zen 4 has 12 in a package */

struct controller {
	struct pmu pmu;
	char name[24];
	unsigned int channel, cpu; /* cpu: the CPU that counts its events, if it has one node */
	int node;    /* or ON_EVERY_NODE */
};
static struct controller controllers[CONTROLLERS];
static const struct homenode_uncore *uncore;
static unsigned int registered;

static struct controller *controller_of(struct pmu *pmu)
{
	return container_of(pmu, struct controller, pmu);
}

static u64 lines_read(unsigned int node)
{
	u64 i, sum = 0;

	for (i = 0; i < homenode_lab->ncpu; i++)
		sum += READ_ONCE(homenode_lab->vcpu[i].dram[node]);
	return sum;
}

static u64 lines_written(unsigned int node)
{
	u64 i, sum = 0;

	for (i = 0; i < homenode_lab->ncpu; i++)
		sum += READ_ONCE(homenode_lab->vcpu[i].writeback[node]);
	return sum;
}

/* The channels' parts add up to all lines of the node. */
static u64 part_of(u64 lines, unsigned int channel)
{
	return (lines + uncore->channels - 1 - channel) / uncore->channels;
}

/* hw.config has what the event counts, hw.idx the node. */
static u64 now(struct perf_event *event)
{
	unsigned int node = event->hw.idx, channel = controller_of(event->pmu)->channel;
	u64 what = event->hw.config, lines = 0;

	if (what & HOMENODE_TICKS)
		return READ_ONCE(homenode_lab->mc_ticks);
	if (what & HOMENODE_BUSY_TICKS)
		return READ_ONCE(homenode_lab->mc_busy_cycles[node]);
	if (what & HOMENODE_LINES_READ)
		lines += part_of(lines_read(node), channel);
	if (what & HOMENODE_LINES_WRITTEN)
		lines += part_of(lines_written(node), channel);
	return lines;
}

static void uncore_read(struct perf_event *event)
{
	u64 after = now(event);

	local64_add(after - local64_xchg(&event->hw.prev_count, after), &event->count);
}

static void uncore_start(struct perf_event *event, int flags)
{
	local64_set(&event->hw.prev_count, now(event));
	event->hw.state = 0;
}

static void uncore_stop(struct perf_event *event, int flags)
{
	if (event->hw.state & PERF_HES_STOPPED)
		return;
	uncore_read(event);
	event->hw.state |= PERF_HES_STOPPED | PERF_HES_UPTODATE;
}

static int uncore_add(struct perf_event *event, int flags)
{
	event->hw.state = PERF_HES_STOPPED | PERF_HES_UPTODATE;
	if (flags & PERF_EF_START)
		uncore_start(event, flags);
	return 0;
}

static void uncore_del(struct perf_event *event, int flags)
{
	uncore_stop(event, PERF_EF_UPDATE);
}

/* The node's first CPU; for a node without CPUs, or one that the kernel ignores (numa=off), the
 * machine's first CPU. */
static unsigned int cpu_for(unsigned int node)
{
	unsigned int cpu = nr_cpu_ids;

	if (node < nr_node_ids && node_online(node))
		cpu = cpumask_first_and(cpumask_of_node(node), cpu_online_mask);
	return cpu < nr_cpu_ids ? cpu : cpumask_first(cpu_online_mask);
}

static int uncore_event_init(struct perf_event *event)
{
	struct controller *c = controller_of(event->pmu);
	const struct homenode_code *code;

	if (event->attr.type != event->pmu->type)
		return -ENOENT;
	if (is_sampling_event(event) || event->attach_state & PERF_ATTACH_TASK || event->cpu < 0 ||
	    (event->attr.config & ~uncore->config_bits))
		return -EINVAL;
	code = homenode_find(uncore->codes, event->attr.config, 0);
	if (!code)
		return -ENOENT;
	event->hw.config = code->sum;
	event->hw.idx = c->node == ON_EVERY_NODE ? cpu_to_node(event->cpu) : c->node;
	event->cpu = c->node == ON_EVERY_NODE ? cpu_for(event->hw.idx) : c->cpu;
	return 0;
}

/* The first CPU of every node that has CPUs. */
static void set_of_all_nodes(struct cpumask *cpus)
{
	int node;

	for_each_online_node(node) if (!cpumask_empty(cpumask_of_node(node)))
		cpumask_set_cpu(cpu_for(node), cpus);
}

static ssize_t cpumask_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	const struct controller *c = controller_of(dev_get_drvdata(dev));
	cpumask_var_t cpus;
	ssize_t n;

	if (c->node != ON_EVERY_NODE)
		return sysfs_emit(buf, "%u\n", c->cpu);
	if (!zalloc_cpumask_var(&cpus, GFP_KERNEL))
		return -ENOMEM;
	set_of_all_nodes(cpus);
	n = cpumap_print_to_pagebuf(true, buf, cpus);
	free_cpumask_var(cpus);
	return n;
}
static DEVICE_ATTR_RO(cpumask);
static struct attribute *cpumask_attrs[] = { &dev_attr_cpumask.attr, NULL };
const struct attribute_group homenode_cpumask_group = { .attrs = cpumask_attrs };

static int register_controller(unsigned int number)
{
	struct controller *c = &controllers[number];

	c->channel = number % uncore->channels;
	c->node = uncore->everywhere ? ON_EVERY_NODE : number / uncore->channels;
	c->cpu = uncore->everywhere ? 0 : cpu_for(c->node);
	snprintf(c->name, sizeof(c->name), uncore->name, number);
	c->pmu = (struct pmu){
		.module = THIS_MODULE,
		.task_ctx_nr = perf_invalid_context,
		.capabilities = PERF_PMU_CAP_NO_INTERRUPT | PERF_PMU_CAP_NO_EXCLUDE,
		.attr_groups = uncore->groups,
		.event_init = uncore_event_init,
		.add = uncore_add,
		.del = uncore_del,
		.start = uncore_start,
		.stop = uncore_stop,
		.read = uncore_read,
	};
	return perf_pmu_register(&c->pmu, c->name, -1);
}

int homenode_uncore_init(const struct homenode_uncore *of)
{
	unsigned int n = of->channels * (of->everywhere ? 1 : homenode_lab->nnode);
	int err;

	uncore = of;
	while (registered < n && registered < CONTROLLERS) {
		err = register_controller(registered);
		if (err) {
			homenode_uncore_exit();
			return err;
		}
		registered++;
	}
	return 0;
}

void homenode_uncore_exit(void)
{
	while (registered)
		perf_pmu_unregister(&controllers[--registered].pmu);
}
