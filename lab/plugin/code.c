// SPDX-License-Identifier: GPL-2.0-or-later
#define _GNU_SOURCE
#include "code.h"
#include <dlfcn.h>
#include <string.h>

#define PAGE 4096
#define RUNS 4096           /* of a turn; what is more is only compared once */
#define BYTES (1 << 18)     /* likewise */

/* Bytes that were translated and are adjacent in the host's memory. */
struct run {
	const unsigned char *at;
	size_t from, bytes; /* in the quantum's copy */
};

/* T advances this far in a turn: more than a vCPU is ever ahead of it (QUANTUM_OFF of clock.c), so
 * that every vCPU has ended the block that it was in when the turn began. */
#define TURN 60000

/* What a vCPU translated in a turn. */
struct turn {
	unsigned runs, checked; /* checked: of these, by number 1 */
	size_t bytes;
	struct run run[RUNS];
	unsigned char copy[BYTES];
};

static struct history {
	struct turn turn[2];
	unsigned now;   /* the other one is the turn before */
	uint64_t since; /* T when it began */
	bool taken;     /* a lock: another vCPU compares for one that sleeps */
} history[HOMENODE_MAX_CPUS];

static uint64_t (*ram_address)(const void *host); /* UINT64_MAX: not RAM */
static void (*drop_translations)(uint64_t from, uint64_t end); /* of RAM */

static unsigned index_of(const struct homenode_vcpu *v)
{
	return (unsigned)(v - homenode_model.vcpu);
}

static struct history *take(const struct homenode_vcpu *v)
{
	struct history *h = &history[index_of(v)];

	while (__atomic_test_and_set(&h->taken, __ATOMIC_ACQUIRE))
		;
	return h;
}

static void release(struct history *h)
{
	__atomic_clear(&h->taken, __ATOMIC_RELEASE);
}

bool homenode_code_init(void)
{
	void *address = dlsym(RTLD_DEFAULT, "qemu_ram_addr_from_host"), *drop = dlsym(RTLD_DEFAULT, "tb_invalidate_phys_range");

	memcpy(&ram_address, &address, sizeof(address));
	memcpy(&drop_translations, &drop, sizeof(drop));
	return address && drop;
}

/* Of an instruction that continues on another page only the first page's part. */
static void add(struct turn *q, const unsigned char *at, const void *code, size_t n)
{
	struct run *r = q->runs ? &q->run[q->runs - 1] : NULL;
	size_t left = PAGE - ((uintptr_t)at & (PAGE - 1));

	n = n < left ? n : left;
	if (!r || q->runs == q->checked || r->at + r->bytes != at) {
		if (q->runs == RUNS)
			return;
		r = &q->run[q->runs++];
		*r = (struct run){ .at = at, .from = q->bytes };
	}
	if (q->bytes + n > BYTES)
		return;
	memcpy(q->copy + q->bytes, code, n);
	r->bytes += n;
	q->bytes += n;
}

void homenode_code_translated(struct homenode_vcpu *v, const struct qemu_plugin_tb *tb, qemu_insn_code *data)
{
	size_t n = qemu_plugin_tb_n_insns(tb);

	if (!n || !qemu_plugin_insn_haddr(qemu_plugin_tb_get_insn(tb, 0)))
		return; /* not in RAM */
	struct history *h = take(v);
	for (size_t i = 0; i < n; i++) {
		struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
		const unsigned char *at = qemu_plugin_insn_haddr(insn);

		if (at)
			add(&h->turn[h->now], at, data(insn), qemu_plugin_insn_size(insn));
	}
	release(h);
	v->unchecked = true;
}

/* Not tb_flush(): it frees the callbacks of the block that runs, and 7.2 uses them once more
 * when it delivers an interrupt. */
static void compare(const struct turn *q, const struct run *r)
{
	if (!memcmp(q->copy + r->from, r->at, r->bytes))
		return;
	uint64_t from = ram_address(r->at);
	if (from != UINT64_MAX)
		drop_translations(from, from + r->bytes);
}

void homenode_code_check(struct homenode_vcpu *v)
{
	struct history *h = take(v);
	struct turn *q = &h->turn[h->now];

	for (; q->checked < q->runs; q->checked++)
		compare(q, &q->run[q->checked]);
	v->unchecked = false;
	__atomic_store_n(&v->unsettled, true, __ATOMIC_RELAXED);
	release(h);
}

static void end_turn(struct homenode_vcpu *v, uint64_t t)
{
	struct history *h = take(v);
	struct turn *before = &h->turn[!h->now];

	if (t - h->since >= TURN) {
		h->since = t;
		for (unsigned i = 0; i < before->runs; i++)
			compare(before, &before->run[i]);
		before->runs = before->checked = 0;
		before->bytes = 0;
		__atomic_store_n(&v->unsettled, h->turn[h->now].runs != 0, __ATOMIC_RELAXED);
		h->now = !h->now;
	}
	release(h);
}

void homenode_code_quantum(struct homenode_vcpu *v, uint64_t t)
{
	const struct homenode_model *m = &homenode_model;

	for (unsigned i = 0; i < m->conf.ncpu; i++) {
		struct homenode_vcpu *w = &homenode_model.vcpu[i];

		if (__atomic_load_n(&w->unsettled, __ATOMIC_RELAXED) && (w == v || !__atomic_load_n(&w->pub->running, __ATOMIC_ACQUIRE)))
			end_turn(w, t);
	}
}
