// SPDX-License-Identifier: GPL-2.0
/*
 * Groups and their ids, and what these count. A freed RMID whose lines are still in a cache rests
 * in limbo (alloc_rmid, add_rmid_to_limbo, __check_limbo in monitor.c of the kernel's resctrl).
 */
#include <linux/delay.h>
#include <linux/slab.h>
#include <linux/workqueue.h>

#include "resctrl.h"

#define LINE 64
#define LIMBO_EVERY (1 * HZ) /* CQM_LIMBOCHECK_INTERVAL */

DEFINE_MUTEX(resctrl_lock);
struct group resctrl_default;
LIST_HEAD(resctrl_controls);
u64 resctrl_threshold;

/* RMIDs in use by a group, and those that rest. The one that was freed first is used first. */
enum { FREE = 0,
       USED,
       LIMBO,
};
static u8 rmid_state[HOMENODE_MAX_RMIDS];
static u64 rmid_freed[HOMENODE_MAX_RMIDS], frees;
static unsigned long closids;

bool resctrl_is_domain(unsigned int node)
{
	return !cpumask_empty(cpumask_of_node(node));
}

static u64 held(unsigned int node, u32 rmid)
{
	return READ_ONCE(homenode_lab->held[node][rmid]) * LINE;
}

/* rmid_dirty(), in every domain. */
static bool rests(u32 rmid)
{
	unsigned int node;

	for_each_domain(node)
		if (held(node, rmid) > resctrl_threshold)
			return true;
	return false;
}

static void free_now(u32 rmid)
{
	rmid_state[rmid] = FREE;
	rmid_freed[rmid] = ++frees;
}

static void look_at_limbo(struct work_struct *work);
static DECLARE_DELAYED_WORK(limbo, look_at_limbo);

static bool in_limbo(void)
{
	unsigned int i;

	for (i = 0; i < resctrl_rmids; i++)
		if (rmid_state[i] == LIMBO)
			return true;
	return false;
}

static void look_at_limbo(struct work_struct *work)
{
	unsigned int i;

	mutex_lock(&resctrl_lock);
	for (i = 0; i < resctrl_rmids; i++)
		if (rmid_state[i] == LIMBO && !rests(i))
			free_now(i);
	if (in_limbo())
		schedule_delayed_work(&limbo, LIMBO_EVERY);
	mutex_unlock(&resctrl_lock);
}

static void free_rmid(u32 rmid)
{
	if (!rests(rmid)) {
		free_now(rmid);
		return;
	}
	rmid_state[rmid] = LIMBO;
	schedule_delayed_work(&limbo, LIMBO_EVERY);
}

static int take_rmid(void)
{
	int i, best = -1;

	for (i = 0; i < resctrl_rmids; i++)
		if (rmid_state[i] == FREE && (best < 0 || rmid_freed[i] < rmid_freed[best]))
			best = i;
	if (best < 0) {
		resctrl_say("Out of RMIDs\n");
		return in_limbo() ? -EBUSY : -ENOSPC;
	}
	rmid_state[best] = USED;
	return best;
}

static int take_closid(struct group *g)
{
	unsigned int i = find_first_zero_bit(&closids, resctrl_closids);
	int err;

	if (i >= resctrl_closids) {
		resctrl_say("Out of CLOSIDs\n");
		return -ENOSPC;
	}
	g->closid = i;
	err = resctrl_init_limits(g);
	if (!err)
		__set_bit(i, &closids);
	return err;
}

/* Lines that the node's CPUs moved for an RMID, ever. */
static void traffic(u32 rmid, unsigned int node, u64 *total, u64 *local)
{
	int cpu;

	*total = *local = 0;
	for_each_cpu(cpu, cpumask_of_node(node)) {
		*total += READ_ONCE(homenode_lab->traffic[cpu][rmid].total);
		*local += READ_ONCE(homenode_lab->traffic[cpu][rmid].local);
	}
}

/* A new group has moved nothing (mon_event_read with `first`). */
static void forget(struct group *g)
{
	unsigned int node;

	for_each_domain(node)
		traffic(g->rmid, node, &g->base_total[node], &g->base_local[node]);
}

static int fill(struct group *g, struct group *parent)
{
	int rmid = take_rmid(), err = 0;

	if (rmid < 0)
		return rmid;
	g->rmid = rmid;
	if (parent)
		g->closid = parent->closid;
	else
		err = take_closid(g);
	if (err)
		free_rmid(rmid);
	else
		forget(g);
	return err;
}

struct group *resctrl_make(struct group *parent)
{
	struct group *g = kzalloc(sizeof(*g), GFP_KERNEL);
	int err;

	if (!g)
		return ERR_PTR(-ENOMEM);
	err = fill(g, parent);
	if (err) {
		kfree(g);
		return ERR_PTR(err);
	}
	kref_init(&g->refs);
	INIT_LIST_HEAD(&g->mons);
	g->parent = parent;
	list_add_tail(&g->siblings, parent ? &parent->mons : &resctrl_controls);
	return g;
}

static void release(struct kref *refs)
{
	kfree(container_of(refs, struct group, refs));
}

void resctrl_put(struct group *g)
{
	if (g && g != &resctrl_default)
		kref_put(&g->refs, release);
}

static void discard(struct group *g)
{
	g->gone = true;
	list_del(&g->siblings);
	free_rmid(g->rmid);
	resctrl_put(g);
}

/* Tasks and CPUs go to the group above. */
int resctrl_remove(struct group *g)
{
	struct group *to = g->parent ?: &resctrl_default, *mon, *next;

	if (g->gone)
		return -ENOENT;
	resctrl_move_all(g, to);
	resctrl_give_cpus(g, to);
	if (is_control(g)) {
		list_for_each_entry_safe(mon, next, &g->mons, siblings)
			discard(mon);
		__clear_bit(g->closid, &closids);
	}
	discard(g);
	return 0;
}

static u64 with_children(const struct group *g, unsigned int node, u64 (*of)(const struct group *, unsigned int))
{
	const struct group *mon;
	u64 sum = of(g, node);

	list_for_each_entry(mon, &g->mons, siblings)
		sum += of(mon, node);
	return sum;
}

static u64 own_occupancy(const struct group *g, unsigned int node)
{
	return held(node, g->rmid);
}

static u64 own_total(const struct group *g, unsigned int node)
{
	u64 total, local;

	traffic(g->rmid, node, &total, &local);
	return (total - g->base_total[node]) * LINE;
}

static u64 own_local(const struct group *g, unsigned int node)
{
	u64 total, local;

	traffic(g->rmid, node, &total, &local);
	return (local - g->base_local[node]) * LINE;
}

u64 resctrl_occupancy(const struct group *g, unsigned int node)
{
	return with_children(g, node, own_occupancy);
}

u64 resctrl_total(const struct group *g, unsigned int node)
{
	return with_children(g, node, own_total);
}

u64 resctrl_local(const struct group *g, unsigned int node)
{
	return with_children(g, node, own_local);
}

/* The model looks at the request when its clock advances. */
static int ask(u64 on)
{
	unsigned int tries;

	WRITE_ONCE(homenode_lab->qos, on);
	for (tries = 0; READ_ONCE(homenode_lab->qos_applied) != on; tries++) {
		if (tries == 1000)
			return -EIO;
		usleep_range(1000, 2000);
	}
	return 0;
}

/* Mounted: everything is in the default group. */
int resctrl_begin(void)
{
	struct group *g = &resctrl_default;
	int err;

	memset(g, 0, sizeof(*g));
	memset(rmid_state, 0, sizeof(rmid_state));
	INIT_LIST_HEAD(&g->mons);
	INIT_LIST_HEAD(&resctrl_controls);
	list_add(&g->siblings, &resctrl_controls);
	cpumask_copy(&g->cpus, cpu_possible_mask);
	rmid_state[0] = USED;
	closids = 1;
	resctrl_threshold = homenode_lab->llc_bytes / resctrl_rmids;
	resctrl_init_limits(g);
	resctrl_reset_cpus();
	err = ask(1);
	if (err)
		return err;
	forget(g);
	return resctrl_watch_switches();
}

void resctrl_end(void)
{
	struct group *g, *next;

	mutex_lock(&resctrl_lock);
	list_for_each_entry_safe(g, next, &resctrl_controls, siblings)
		if (g != &resctrl_default)
			resctrl_remove(g);
	list_for_each_entry_safe(g, next, &resctrl_default.mons, siblings)
		resctrl_remove(g);
	mutex_unlock(&resctrl_lock);
	cancel_delayed_work_sync(&limbo);
	resctrl_ignore_switches();
	resctrl_move_all(NULL, &resctrl_default);
	resctrl_reset_cpus();
	if (ask(0))
		pr_err("homenode_resctrl: the model goes on counting by RMID\n");
}
