// SPDX-License-Identifier: GPL-2.0-or-later
#define _GNU_SOURCE
#include "host.h"
#include "clock.h"
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#define CLOCK_VIRTUAL 1 /* QEMU_CLOCK_VIRTUAL (include/qemu/timer.h) */
#define SCALE_NS 1
/* Of timers that T stops at: none, which leaves out QEMU_TIMER_ATTR_EXTERNAL. Those are QEMU's
 * own, of the virtual clock all the same: after 600 s a qcow2 image (a disk with snapshot=on has
 * one) cleans its cache. They are in other lists than run_timers runs, so T stood still for ever. */
#define GUEST_ATTRIBUTES 0
#define TIMER_BYTES 256 /* QEMUTimer has some 64; it is written by timer_init_full */
#define CODE_BYTES 64   /* of a function, in which the table's use must stand */
#define TABLE_BYTES 4096 /* a larger value is no offset */

typedef void timer_cb(void *opaque);

/* Functions of QEMU; the second name is that of newer versions. */
static struct {
	void *(*get_accel)(void);
	void *get_clock_code, *get_ticks_code, *kick_code;
	int64_t (*clock_ns)(int type);
	int64_t (*deadline)(int type, int attributes);
	bool (*run)(int type);
	void (*enable)(int type, bool on);
	void (*timer_init)(void *t, void *group, int type, int scale, int attributes, timer_cb *cb, void *opaque);
	void (*timer_mod)(void *t, int64_t expire_ns);
	void (*timer_del)(void *t);
	void *(*get_cpu)(int index);
	bool (*is_idle)(void *cpu);
	void (*kick)(void *cpu);
	bool (*locked)(void);
	void (*lock)(const char *file, int line);
	void (*unlock)(void);
} qemu;

static const struct {
	void *to;
	const char *name, *newer;
} symbols[] = {
	{ &qemu.get_accel, "cpus_get_accel", NULL },
	{ &qemu.get_clock_code, "cpus_get_virtual_clock", NULL },
	{ &qemu.get_ticks_code, "cpus_get_elapsed_ticks", NULL },
	{ &qemu.kick_code, "qemu_cpu_kick", NULL },
	{ &qemu.kick, "qemu_cpu_kick", NULL },
	{ &qemu.clock_ns, "qemu_clock_get_ns", NULL },
	{ &qemu.deadline, "qemu_clock_deadline_ns_all", NULL },
	{ &qemu.run, "qemu_clock_run_timers", NULL },
	{ &qemu.enable, "qemu_clock_enable", NULL },
	{ &qemu.timer_init, "timer_init_full", NULL },
	{ &qemu.timer_mod, "timer_mod_ns", NULL },
	{ &qemu.timer_del, "timer_del", NULL },
	{ &qemu.get_cpu, "qemu_get_cpu", NULL },
	{ &qemu.is_idle, "cpu_thread_is_idle", NULL },
	{ &qemu.locked, "qemu_mutex_iothread_locked", "bql_locked" },
	{ &qemu.lock, "qemu_mutex_lock_iothread_impl", "bql_lock_impl" },
	{ &qemu.unlock, "qemu_mutex_unlock_iothread", "bql_unlock" },
};

static void (*kick_before)(void *cpu); /* QEMU's own */

static bool find_symbols(char *err, size_t len)
{
	for (size_t i = 0; i < sizeof(symbols) / sizeof(symbols[0]); i++) {
		void *p = dlsym(RTLD_DEFAULT, symbols[i].name);

		if (!p && symbols[i].newer)
			p = dlsym(RTLD_DEFAULT, symbols[i].newer);
		if (!p) {
			snprintf(err, len, "it does not export %s: use QEMU 7.2 or 10.0 as Debian builds it", symbols[i].name);
			return false;
		}
		memcpy(symbols[i].to, &p, sizeof(p));
	}
	return true;
}

/* A 64-bit `mov disp(reg), reg2`.  Returns its length; 0: another instruction. */
struct load {
	unsigned base, to;
	bool rip;
	int32_t disp;
};

static unsigned decode_load(const unsigned char *p, struct load *l)
{
	if (p[0] != 0x48 || p[1] != 0x8b)
		return 0;
	unsigned mod = p[2] >> 6;

	*l = (struct load){ .base = p[2] & 7, .to = p[2] >> 3 & 7, .rip = mod == 0 && (p[2] & 7) == 5 };
	if (l->base == 4 || mod == 3 || (mod == 0 && !l->rip))
		return 0; /* SIB, registers, no displacement: not the wanted form */
	if (mod == 1) {
		l->disp = (signed char)p[3];
		return 4;
	}
	memcpy(&l->disp, p + 3, sizeof(l->disp));
	return 7;
}

/* Bytes that only look like a load may name any address. An unmapped one must not crash. */
static bool read_pointer(const void *from, void **to)
{
	struct iovec own = { to, sizeof(*to) }, it = { (void *)from, sizeof(*to) };

	return process_vm_readv(getpid(), &own, 1, &it, 1, 0) == sizeof(*to);
}

static bool in_table(int32_t offset)
{
	return offset > 0 && offset % sizeof(void *) == 0 && offset < TABLE_BYTES;
}

/* The operation's place in the table: the first load through the register that the
 * address of the table was loaded to.  NULL: the code is not as expected. */
static void **operation(const unsigned char *code, void *table)
{
	struct load l;
	int reg = -1;

	for (unsigned i = 0; i < CODE_BYTES; i++) {
		unsigned n = decode_load(code + i, &l);

		if (!n)
			continue;
		if (l.rip) {
			void *at;

			if (read_pointer(code + i + n + l.disp, &at) && at == table)
				reg = (int)l.to;
		} else if (reg >= 0 && l.base == (unsigned)reg) {
			return in_table(l.disp) ? (void **)((char *)table + l.disp) : NULL;
		}
	}
	return NULL;
}

static int64_t deadline_ns(void)
{
	return qemu.deadline(CLOCK_VIRTUAL, GUEST_ATTRIBUTES);
}

static void run_timers(void)
{
	bool had = qemu.locked();

	if (!had)
		qemu.lock(__FILE__, __LINE__);
	qemu.run(CLOCK_VIRTUAL);
	if (!had)
		qemu.unlock();
}

static bool has_work(unsigned cpu)
{
	void *c = qemu.get_cpu((int)cpu);

	return c && !qemu.is_idle(c);
}

static const struct homenode_host host = { deadline_ns, run_timers, has_work };

/* QEMU wants this vCPU to leave its block, for an interrupt, for work, or for an exclusive
 * section.  A vCPU that waits for the clock then passes a block, so that it can leave. */
static void on_kick(void *cpu)
{
	kick_before(cpu);
	for (unsigned i = 0; i < homenode_model.conf.ncpu; i++)
		if (qemu.get_cpu((int)i) == cpu) {
			homenode_clock_kick(&homenode_model.vcpu[i]);
			return;
		}
}

static void count(void *opaque)
{
	++*(int *)opaque;
}

/* A timer of a millisecond must be due after exactly a millisecond, and then run once. */
static const char *check_timer(void)
{
	static _Alignas(16) char timer[TIMER_BYTES];
	const int64_t length = 1000000;
	int ran = 0;

	int64_t start = qemu.clock_ns(CLOCK_VIRTUAL);
	qemu.timer_init(timer, NULL, CLOCK_VIRTUAL, SCALE_NS, 0, count, &ran);
	qemu.timer_mod(timer, start + length);
	int64_t left = deadline_ns();
	homenode_clock_set_ns((uint64_t)(start + length / 2));
	run_timers();
	bool early = ran != 0;
	homenode_clock_set_ns((uint64_t)(start + length));
	run_timers();
	qemu.timer_del(timer);
	if (left != length)
		return "a timer of 1 ms is not due after 1 ms";
	return early ? "a timer ran before it was due" : (ran != 1 ? "a timer that was due did not run once" : NULL);
}

static const char *check(void)
{
	homenode_clock_set_ns(123456000);
	if (qemu.clock_ns(CLOCK_VIRTUAL) != 123456000)
		return "the guest's clock does not follow";
	int64_t (*ticks)(void);
	memcpy(&ticks, &qemu.get_ticks_code, sizeof(ticks));
	if (ticks() != 123456000)
		return "the time-stamp counter does not follow";
	qemu.enable(CLOCK_VIRTUAL, true); /* QEMU does that when the guest starts */
	const char *wrong = check_timer();
	qemu.enable(CLOCK_VIRTUAL, false);
	return wrong;
}

static void *pointer(void (*f)(void))
{
	void *p;

	memcpy(&p, &f, sizeof(p));
	return p;
}

bool homenode_host_take_over(char *err, size_t len)
{
	if (!find_symbols(err, len))
		return false;
	void *table = qemu.get_accel();
	void **clock = table ? operation(qemu.get_clock_code, table) : NULL;
	void **ticks = table ? operation(qemu.get_ticks_code, table) : NULL;
	void **kick = table ? operation(qemu.kick_code, table) : NULL;

	if (!clock || !ticks || !kick || clock == ticks || clock == kick || ticks == kick || !*kick) {
		snprintf(err, len, "its table of operations is not where it was in the versions known: use QEMU 7.2 or 10.0 as Debian builds it");
		return false;
	}
	memcpy(&kick_before, kick, sizeof(kick_before));
	*clock = *ticks = pointer((void (*)(void))homenode_clock_guest_ns);
	*kick = pointer((void (*)(void))on_kick);
	const char *wrong = check();
	if (wrong) {
		snprintf(err, len, "%s: use QEMU 7.2 or 10.0 as Debian builds it", wrong);
		return false;
	}
	homenode_clock_set_ns(0);
	homenode_clock_host(&host);
	return true;
}
