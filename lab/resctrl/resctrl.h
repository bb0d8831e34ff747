/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A resctrl file system in the lab's guest. It keeps the rules of Linux 6.1's own
 * (arch/x86/kernel/cpu/resctrl, Documentation/x86/resctrl.rst), which this guest's CPUs are too
 * old for. The memory model on the host is the hardware:
 *
 *	task->closid, task->rmid ─ sched_switch ─▶ vcpu.pqr of the shared page
 *	schemata                 ─────────────────▶ ways, throttle
 *	mon_data                 ◀───────────────── held, traffic
 *
 * Tasks have the kernel's own fields, which fork copies. Nothing else uses them here.
 *
 * A domain is a node: the model has an LLC for each. Not there: CDP, L2, SMBA, mba_MBps,
 * pseudo-locking. The counters have 64 bits and never wrap.
 */
#ifndef HOMENODE_RESCTRL_H
#define HOMENODE_RESCTRL_H

#include <linux/cpumask.h>
#include <linux/dcache.h>
#include <linux/fs.h>
#include <linux/kref.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/seq_file.h>

#include "homenode_lab.h"

extern struct homenode_lab_shared *homenode_lab; /* homenode_pmu has mapped it */

#define MAX_BANDWIDTH 100 /* percent */
#define MIN_BANDWIDTH 10
#define BANDWIDTH_STEP 10
#define MIN_WAYS 1

/* A control group, or a monitoring group of the control group `parent`. */
struct group {
	struct kref refs; /* the file system's, and one of each inode */
	struct group *parent; /* NULL: it is a control group */
	struct list_head siblings; /* of all control groups; of its parent's monitoring groups */
	struct list_head mons;
	u32 closid, rmid;
	bool gone, exclusive;
	struct cpumask cpus;
	u64 base_total[HOMENODE_MAX_NODES], base_local[HOMENODE_MAX_NODES]; /* lines before it was made */
};

extern struct mutex resctrl_lock; /* guards everything but what a switch reads */
extern struct group resctrl_default;
extern struct list_head resctrl_controls;
extern unsigned int resctrl_rmids, resctrl_closids;
extern u64 resctrl_threshold; /* bytes */

static inline bool is_control(const struct group *g)
{
	return !g->parent;
}

/* The node's CPUs have an LLC, which is a domain. */
bool resctrl_is_domain(unsigned int node);
#define for_each_domain(n) \
	for ((n) = 0; (n) < homenode_lab->nnode; (n)++) if (resctrl_is_domain(n))

/* What info/last_cmd_status says. */
void resctrl_say(const char *format, ...) __printf(1, 2);
void resctrl_say_nothing(void);
const char *resctrl_said(void);

/* group.c */
struct group *resctrl_make(struct group *parent); /* NULL: a control group; or an ERR_PTR */
int resctrl_remove(struct group *g);
void resctrl_put(struct group *g);
int resctrl_begin(void);
void resctrl_end(void);
u64 resctrl_occupancy(const struct group *g, unsigned int node);
u64 resctrl_total(const struct group *g, unsigned int node);
u64 resctrl_local(const struct group *g, unsigned int node);

/* tasks.c */
int resctrl_watch_switches(void);
void resctrl_ignore_switches(void);
int resctrl_move_task(struct group *to, char *text);
void resctrl_list_tasks(struct seq_file *out, const struct group *g);
void resctrl_move_all(const struct group *from, const struct group *to); /* from NULL: all tasks */
int resctrl_set_cpus(struct group *g, char *text, bool list);
void resctrl_give_cpus(struct group *from, struct group *to);
void resctrl_sync(const struct cpumask *cpus);
void resctrl_reset_cpus(void);

/* schemata.c */
u64 resctrl_all_ways(void);
int resctrl_init_limits(struct group *g);
void resctrl_show_schemata(struct seq_file *out, const struct group *g);
int resctrl_set_schemata(struct group *g, char *text);
void resctrl_show_bit_usage(struct seq_file *out);
void resctrl_show_size(struct seq_file *out, const struct group *g);
int resctrl_set_mode(struct group *g, const char *text);

/* files.c: what is in a directory. `domain` is of mon_data/mon_L3_XX. */
struct file_kind {
	const char *name;
	umode_t mode;
	int (*show)(struct seq_file *out, struct group *g, unsigned int domain);
	int (*store)(struct group *g, char *text); /* without its newline */
	bool newline; /* a write must end with one */
};
extern const struct file_kind resctrl_base_files[], resctrl_control_files[], resctrl_mon_files[];
extern const struct file_kind resctrl_info_files[], resctrl_info_l3[], resctrl_info_mb[], resctrl_info_l3_mon[];

#endif
