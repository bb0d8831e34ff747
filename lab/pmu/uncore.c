// SPDX-License-Identifier: GPL-2.0
/*
 * The memory controllers' PMUs: uncore_imc_<node>. They count per CPU and never per task, as on
 * hardware, where the number is a channel's.
 *
 * Lines read and written back are summed from the vCPUs' own counts and exact at any moment.
 * Clock and busy cycles are as of the model's last update of its queues (at most some 25,000
 * cycles ago). Events here never share a counter.
 * Not supported: sampling.
 */
#include <linux/device.h>

#include "pmu.h"

struct controller {
	struct pmu pmu;
	char name[16];
	unsigned int node, cpu; /* cpu: the CPU that counts its events */
};
static struct controller controllers[HOMENODE_MAX_NODES];
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

static u64 now(struct perf_event *event)
{
	unsigned int node = controller_of(event->pmu)->node;

	switch (event->attr.config) {
	case HOMENODE_IMC_CAS_READ:
		return lines_read(node);
	case HOMENODE_IMC_CAS_WRITE:
		return lines_written(node);
	case HOMENODE_IMC_RPQ_NOT_EMPTY:
		return READ_ONCE(homenode_lab->mc_busy_cycles[node]);
	default: /* HOMENODE_IMC_CLOCKTICKS */
		return READ_ONCE(homenode_lab->mc_ticks);
	}
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

static int uncore_event_init(struct perf_event *event)
{
	if (event->attr.type != event->pmu->type)
		return -ENOENT;
	if (is_sampling_event(event) || event->attach_state & PERF_ATTACH_TASK || event->cpu < 0)
		return -EINVAL;
	switch (event->attr.config) {
	case HOMENODE_IMC_CLOCKTICKS:
	case HOMENODE_IMC_CAS_READ:
	case HOMENODE_IMC_CAS_WRITE:
	case HOMENODE_IMC_RPQ_NOT_EMPTY:
		event->cpu = controller_of(event->pmu)->cpu;
		return 0;
	}
	return -ENOENT;
}

PMU_FORMAT_ATTR(event, "config:0-7");
PMU_FORMAT_ATTR(umask, "config:8-15");
static struct attribute *format_attrs[] = { &format_attr_event.attr, &format_attr_umask.attr, NULL };
static const struct attribute_group format_group = { .name = "format", .attrs = format_attrs };

PMU_EVENT_ATTR_STRING(clockticks, event_clockticks, "event=0x0");
PMU_EVENT_ATTR_STRING(cas_count_read, event_cas_read, "event=0x4,umask=0x3");
PMU_EVENT_ATTR_STRING(cas_count_read.scale, event_cas_read_scale, "6.103515625e-5");
PMU_EVENT_ATTR_STRING(cas_count_read.unit, event_cas_read_unit, "MiB");
PMU_EVENT_ATTR_STRING(cas_count_write, event_cas_write, "event=0x4,umask=0xc");
PMU_EVENT_ATTR_STRING(cas_count_write.scale, event_cas_write_scale, "6.103515625e-5");
PMU_EVENT_ATTR_STRING(cas_count_write.unit, event_cas_write_unit, "MiB");
PMU_EVENT_ATTR_STRING(rpq_not_empty, event_rpq, "event=0x11");
static struct attribute *event_attrs[] = {
	&event_clockticks.attr.attr,
	&event_cas_read.attr.attr,
	&event_cas_read_scale.attr.attr,
	&event_cas_read_unit.attr.attr,
	&event_cas_write.attr.attr,
	&event_cas_write_scale.attr.attr,
	&event_cas_write_unit.attr.attr,
	&event_rpq.attr.attr,
	NULL,
};
static const struct attribute_group events_group = { .name = "events", .attrs = event_attrs };

static ssize_t cpumask_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%u\n", controller_of(dev_get_drvdata(dev))->cpu);
}
static DEVICE_ATTR_RO(cpumask);
static struct attribute *cpumask_attrs[] = { &dev_attr_cpumask.attr, NULL };
static const struct attribute_group cpumask_group = { .attrs = cpumask_attrs };

static const struct attribute_group *uncore_groups[] = {
	&format_group,
	&events_group,
	&cpumask_group,
	&homenode_identifier_group,
	NULL,
};

/* The node's first CPU; for a node without CPUs, or one that the kernel ignores (numa=off), the
 * machine's first CPU. */
static unsigned int cpu_for(unsigned int node)
{
	unsigned int cpu = nr_cpu_ids;

	if (node < nr_node_ids && node_online(node))
		cpu = cpumask_first_and(cpumask_of_node(node), cpu_online_mask);
	return cpu < nr_cpu_ids ? cpu : cpumask_first(cpu_online_mask);
}

static int register_controller(unsigned int node)
{
	struct controller *c = &controllers[node];

	c->node = node;
	c->cpu = cpu_for(node);
	snprintf(c->name, sizeof(c->name), "uncore_imc_%u", node);
	c->pmu = (struct pmu){
		.module = THIS_MODULE,
		.task_ctx_nr = perf_invalid_context,
		.capabilities = PERF_PMU_CAP_NO_INTERRUPT | PERF_PMU_CAP_NO_EXCLUDE,
		.attr_groups = uncore_groups,
		.event_init = uncore_event_init,
		.add = uncore_add,
		.del = uncore_del,
		.start = uncore_start,
		.stop = uncore_stop,
		.read = uncore_read,
	};
	return perf_pmu_register(&c->pmu, c->name, -1);
}

int homenode_uncore_init(void)
{
	int err;

	while (registered < homenode_lab->nnode && registered < HOMENODE_MAX_NODES) {
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
