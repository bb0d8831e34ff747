// SPDX-License-Identifier: GPL-2.0
/* What the files say. */
#include "resctrl.h"

static int show_tasks(struct seq_file *out, struct group *g, unsigned int domain)
{
	resctrl_list_tasks(out, g);
	return 0;
}

static int show_cpus(struct seq_file *out, struct group *g, unsigned int domain)
{
	seq_printf(out, "%*pb\n", cpumask_pr_args(&g->cpus));
	return 0;
}

static int show_cpus_list(struct seq_file *out, struct group *g, unsigned int domain)
{
	seq_printf(out, "%*pbl\n", cpumask_pr_args(&g->cpus));
	return 0;
}

static int set_cpus(struct group *g, char *text)
{
	return resctrl_set_cpus(g, text, false);
}

static int set_cpus_list(struct group *g, char *text)
{
	return resctrl_set_cpus(g, text, true);
}

static int show_schemata(struct seq_file *out, struct group *g, unsigned int domain)
{
	resctrl_show_schemata(out, g);
	return 0;
}

static int show_size(struct seq_file *out, struct group *g, unsigned int domain)
{
	resctrl_show_size(out, g);
	return 0;
}

static int show_mode(struct seq_file *out, struct group *g, unsigned int domain)
{
	seq_puts(out, g->exclusive ? "exclusive\n" : "shareable\n");
	return 0;
}

static int set_mode(struct group *g, char *text)
{
	return resctrl_set_mode(g, text);
}

const struct file_kind resctrl_base_files[] = {
	{ "cpus", 0644, show_cpus, set_cpus },
	{ "cpus_list", 0644, show_cpus_list, set_cpus_list },
	{ "tasks", 0644, show_tasks, resctrl_move_task },
	{}
};

const struct file_kind resctrl_control_files[] = {
	{ "schemata", 0644, show_schemata, resctrl_set_schemata, true },
	{ "mode", 0644, show_mode, set_mode, true },
	{ "size", 0444, show_size },
	{}
};

static int show_occupancy(struct seq_file *out, struct group *g, unsigned int domain)
{
	seq_printf(out, "%llu\n", resctrl_occupancy(g, domain));
	return 0;
}

static int show_total(struct seq_file *out, struct group *g, unsigned int domain)
{
	seq_printf(out, "%llu\n", resctrl_total(g, domain));
	return 0;
}

static int show_local(struct seq_file *out, struct group *g, unsigned int domain)
{
	seq_printf(out, "%llu\n", resctrl_local(g, domain));
	return 0;
}

const struct file_kind resctrl_mon_files[] = {
	{ "llc_occupancy", 0444, show_occupancy },
	{ "mbm_total_bytes", 0444, show_total },
	{ "mbm_local_bytes", 0444, show_local },
	{}
};

static int show_status(struct seq_file *out, struct group *g, unsigned int domain)
{
	seq_puts(out, *resctrl_said() ? resctrl_said() : "ok\n");
	return 0;
}

const struct file_kind resctrl_info_files[] = { { "last_cmd_status", 0444, show_status }, {} };

#define SHOWS(name, format, value)                                                 \
	static int name(struct seq_file *out, struct group *g, unsigned int domain) \
	{                                                                          \
		seq_printf(out, format "\n", value);                                \
		return 0;                                                          \
	}

SHOWS(show_closids, "%u", resctrl_closids)
SHOWS(show_rmids, "%u", resctrl_rmids)
SHOWS(show_mask, "%llx", resctrl_all_ways())
SHOWS(show_min_ways, "%d", MIN_WAYS)
SHOWS(show_shareable, "%x", 0)
SHOWS(show_min_bandwidth, "%d", MIN_BANDWIDTH)
SHOWS(show_step, "%d", BANDWIDTH_STEP)
SHOWS(show_linear, "%d", 1)
SHOWS(show_throttle_mode, "%s", "per-thread")
SHOWS(show_features, "%s", "llc_occupancy\nmbm_total_bytes\nmbm_local_bytes")
SHOWS(show_threshold, "%llu", resctrl_threshold)

static int show_bit_usage(struct seq_file *out, struct group *g, unsigned int domain)
{
	resctrl_show_bit_usage(out);
	return 0;
}

/* max_threshold_occ_write() */
static int set_threshold(struct group *g, char *text)
{
	unsigned int bytes;
	int err = kstrtouint(strim(text), 0, &bytes);

	if (err)
		return err;
	if (bytes > homenode_lab->llc_bytes)
		return -EINVAL;
	resctrl_threshold = bytes;
	return 0;
}

const struct file_kind resctrl_info_l3[] = {
	{ "num_closids", 0444, show_closids },
	{ "cbm_mask", 0444, show_mask },
	{ "min_cbm_bits", 0444, show_min_ways },
	{ "shareable_bits", 0444, show_shareable },
	{ "bit_usage", 0444, show_bit_usage },
	{}
};

const struct file_kind resctrl_info_mb[] = {
	{ "num_closids", 0444, show_closids },
	{ "min_bandwidth", 0444, show_min_bandwidth },
	{ "bandwidth_gran", 0444, show_step },
	{ "delay_linear", 0444, show_linear },
	{ "thread_throttle_mode", 0444, show_throttle_mode },
	{}
};

const struct file_kind resctrl_info_l3_mon[] = {
	{ "num_rmids", 0444, show_rmids },
	{ "mon_features", 0444, show_features },
	{ "max_threshold_occupancy", 0644, show_threshold, set_threshold },
	{}
};
