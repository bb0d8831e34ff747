// SPDX-License-Identifier: GPL-2.0
/*
 * Which group a task and a CPU belong to. A task counts for its group at once: a CPU that runs it
 * is interrupted (update_task_closid_rmid in rdtgroup.c of the kernel's resctrl). A task of the
 * default group counts for the group of its CPU (resctrl_sched_in).
 */
#include <linux/cred.h>
#include <linux/pid.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>
#include <linux/smp.h>
#include <linux/tracepoint.h>

#include "resctrl.h"

static DEFINE_PER_CPU(u64, default_pqr);
static DEFINE_PER_CPU(u64, current_pqr);

/* On its CPU, with preemption off. */
static void set_pqr(const struct task_struct *t)
{
	u64 pqr = this_cpu_read(default_pqr);
	u32 closid = READ_ONCE(t->closid) ?: (u32)(pqr >> 32), rmid = READ_ONCE(t->rmid) ?: (u32)pqr;

	pqr = HOMENODE_PQR(closid, rmid);
	if (pqr == this_cpu_read(current_pqr))
		return;
	this_cpu_write(current_pqr, pqr);
	WRITE_ONCE(homenode_lab->vcpu[smp_processor_id()].pqr, pqr);
}

static void on_switch(void *data, bool preempt, struct task_struct *prev, struct task_struct *next, unsigned int state)
{
	set_pqr(next);
}

static struct tracepoint *sched_switch;

static void find_switch(struct tracepoint *tp, void *unused)
{
	if (!strcmp(tp->name, "sched_switch"))
		sched_switch = tp;
}

static void sync_here(void *unused)
{
	set_pqr(current);
}

void resctrl_sync(const struct cpumask *cpus)
{
	on_each_cpu_mask(cpus, sync_here, NULL, 1);
}

int resctrl_watch_switches(void)
{
	int err;

	for_each_kernel_tracepoint(find_switch, NULL);
	if (!sched_switch)
		return -ENOENT;
	err = tracepoint_probe_register(sched_switch, on_switch, NULL);
	if (!err)
		resctrl_sync(cpu_online_mask);
	return err;
}

void resctrl_ignore_switches(void)
{
	if (sched_switch)
		tracepoint_probe_unregister(sched_switch, on_switch, NULL);
	tracepoint_synchronize_unregister();
}

static void forget_here(void *unused)
{
	this_cpu_write(default_pqr, 0);
	this_cpu_write(current_pqr, 0);
	WRITE_ONCE(homenode_lab->vcpu[smp_processor_id()].pqr, 0);
}

void resctrl_reset_cpus(void)
{
	on_each_cpu(forget_here, NULL, 1);
}

static bool belongs(const struct task_struct *t, const struct group *g)
{
	return is_control(g) ? t->closid == g->closid : t->rmid == g->rmid;
}

static void set_group(struct task_struct *t, const struct group *to)
{
	WRITE_ONCE(t->closid, to->closid);
	WRITE_ONCE(t->rmid, to->rmid);
}

void resctrl_move_all(const struct group *from, const struct group *to)
{
	struct task_struct *p, *t;

	rcu_read_lock();
	for_each_process_thread(p, t)
		if (!from || belongs(t, from))
			set_group(t, to);
	rcu_read_unlock();
	if (from)
		resctrl_sync(cpu_online_mask);
}

static int allowed(struct task_struct *t)
{
	const struct cred *mine = current_cred(), *its = get_task_cred(t);
	bool ok = uid_eq(mine->euid, GLOBAL_ROOT_UID) || uid_eq(mine->euid, its->uid) || uid_eq(mine->euid, its->suid);

	put_cred(its);
	if (ok)
		return 0;
	resctrl_say("No permission to move task %d\n", t->pid);
	return -EPERM;
}

/* __rdtgroup_move_task() */
static int move(struct task_struct *t, const struct group *to)
{
	if (t->closid == to->closid && t->rmid == to->rmid)
		return 0;
	if (!is_control(to) && t->closid != to->closid) {
		resctrl_say("Can't move task to different control group\n");
		return -EINVAL;
	}
	set_group(t, to);
	smp_mb(); /* a switch to it either sees the new group, or is seen here */
	if (READ_ONCE(t->on_cpu))
		smp_call_function_single(task_cpu(t), sync_here, NULL, 1);
	return 0;
}

int resctrl_move_task(struct group *to, char *text)
{
	struct task_struct *t;
	int pid, err;

	if (kstrtoint(strstrip(text), 0, &pid) || pid < 0)
		return -EINVAL;
	resctrl_say_nothing();
	rcu_read_lock();
	t = pid ? pid_task(find_vpid(pid), PIDTYPE_PID) : current;
	if (t)
		get_task_struct(t);
	rcu_read_unlock();
	if (!t) {
		resctrl_say("No task %d\n", pid);
		return -ESRCH;
	}
	err = allowed(t) ?: move(t, to);
	put_task_struct(t);
	return err;
}

void resctrl_list_tasks(struct seq_file *out, const struct group *g)
{
	struct task_struct *p, *t;

	rcu_read_lock();
	for_each_process_thread(p, t) {
		pid_t pid = belongs(t, g) ? task_pid_vnr(t) : 0;

		if (pid)
			seq_printf(out, "%d\n", pid);
	}
	rcu_read_unlock();
}

static void set_defaults(const struct cpumask *cpus, const struct group *g)
{
	int cpu;

	for_each_cpu(cpu, cpus)
		per_cpu(default_pqr, cpu) = HOMENODE_PQR(g->closid, g->rmid);
	resctrl_sync(cpu_online_mask);
}

void resctrl_give_cpus(struct group *from, struct group *to)
{
	if (cpumask_empty(&from->cpus))
		return;
	cpumask_or(&to->cpus, &to->cpus, &from->cpus);
	set_defaults(&from->cpus, to);
	cpumask_clear(&from->cpus);
}

/* cpus_ctrl_write(): a CPU is in one control group. */
static int control_cpus(struct group *g, const struct cpumask *want)
{
	struct group *other, *mon;
	struct cpumask dropped;

	cpumask_andnot(&dropped, &g->cpus, want);
	if (g == &resctrl_default && !cpumask_empty(&dropped)) {
		resctrl_say("Can't drop CPUs from default group\n");
		return -EINVAL;
	}
	cpumask_or(&resctrl_default.cpus, &resctrl_default.cpus, &dropped);
	set_defaults(&dropped, &resctrl_default);
	list_for_each_entry(other, &resctrl_controls, siblings)
		if (other != g)
			cpumask_andnot(&other->cpus, &other->cpus, want);
	cpumask_copy(&g->cpus, want);
	set_defaults(want, g);
	list_for_each_entry(other, &resctrl_controls, siblings)
		list_for_each_entry(mon, &other->mons, siblings)
			cpumask_and(&mon->cpus, &mon->cpus, &other->cpus);
	return 0;
}

/* cpus_mon_write(): a CPU of the parent is in one monitoring group at most. */
static int mon_cpus(struct group *g, const struct cpumask *want)
{
	struct group *other;
	struct cpumask dropped;

	if (!cpumask_subset(want, &g->parent->cpus)) {
		resctrl_say("Can only add CPUs to mongroup that belong to parent\n");
		return -EINVAL;
	}
	cpumask_andnot(&dropped, &g->cpus, want);
	set_defaults(&dropped, g->parent);
	list_for_each_entry(other, &g->parent->mons, siblings)
		cpumask_andnot(&other->cpus, &other->cpus, want);
	cpumask_copy(&g->cpus, want);
	set_defaults(want, g);
	return 0;
}

int resctrl_set_cpus(struct group *g, char *text, bool list)
{
	struct cpumask want;
	int err;

	resctrl_say_nothing();
	cpumask_clear(&want);
	text = strim(text);
	err = list ? bitmap_parselist(text, cpumask_bits(&want), nr_cpu_ids) : bitmap_parse(text, UINT_MAX, cpumask_bits(&want), nr_cpu_ids);
	if (err) {
		resctrl_say("Bad CPU list/mask\n");
		return err;
	}
	if (!cpumask_subset(&want, cpu_online_mask)) {
		resctrl_say("Can only assign online CPUs\n");
		return -EINVAL;
	}
	return is_control(g) ? control_cpus(g, &want) : mon_cpus(g, &want);
}
