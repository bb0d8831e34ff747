// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * QEMU TCG plugin of homenode's lab: feeds every executed block and every data
 * access of the guest to the modelled memory system, whose clock is the guest's.
 *
 *	-plugin libhomenode_lab.so,shm=FILE,conf=FILE[,off=N]
 *
 * off: instructions per cycle while the model is OFF (1). A higher value makes the guest a faster
 * machine while it boots, so a program that waits for the guest's clock sees less of it pass.
 */
#define _GNU_SOURCE
#include "clock.h"
#include "code.h"
#include "qemu_api.h"
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define likely(x)   __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

#define API_OLD 1 /* QEMU 7.2 has up to 1 */
#define API_NEW 4 /* QEMU 10.0 has 2 to 4 */
#define LOW_MEMORY 0xe0000000ULL /* with this much, some of it is above 4 GiB (pc_init1 in hw/i386/pc_piix.c) */
#define CODE_MOST 15 /* bytes of an x86 instruction */
/* Cycles of a PAUSE since Skylake (Intel's optimization manual, Pause Latency). A waiting loop
 * executes little else. With one cycle for each it would cost the host 140 times as many
 * instructions. */
#define PAUSE_CYCLES 140

HOMENODE_EXPORT int qemu_plugin_version = API_OLD;

static union {
	void *symbol;
	qemu_insn_code *code; /* API_OLD */
	qemu_insn_copy *copy; /* API_NEW */
} insn_data;

/* QEMU loads the plugin, then reads the version that it wants. */
static __attribute__((constructor)) void choose_version(void)
{
	if (dlsym(RTLD_DEFAULT, "qemu_plugin_read_memory_vaddr")) /* since 4 */
		qemu_plugin_version = API_NEW;
	insn_data.symbol = dlsym(RTLD_DEFAULT, "qemu_plugin_insn_data");
}

/* A block's user data: instructions in bits 0-11, kernel in bit 12, PAUSE at its end in bit
 * 13, and the low 47 bits of its address from bit 17, to recognise the guest's context
 * switch. */
#define BLOCK_KERNEL  (1ULL << 12)
#define BLOCK_PAUSE   (1ULL << 13)
#define ADDRESS_SHIFT 17

static bool is_context_switch(uint64_t block, uint64_t switch_to)
{
	return switch_to && !((block ^ switch_to << ADDRESS_SHIFT) >> ADDRESS_SHIFT);
}

static void on_block(unsigned int cpu, void *udata)
{
	struct homenode_model *m = &homenode_model;
	struct homenode_vcpu *v = &m->vcpu[cpu];
	uint64_t block = (uint64_t)udata, n = block & 0xfff;
	uint64_t pause = unlikely(block & BLOCK_PAUSE) ? PAUSE_CYCLES - 1 : 0;

	if (unlikely(!v->started)) /* QEMU only announces a vCPU that slept before, see clock.c */
		homenode_clock_resume(m, v);
	if (unlikely(v->unchecked))
		homenode_code_check(v);
	if (likely(__atomic_load_n(&homenode_on, __ATOMIC_RELAXED))) {
		v->ctr = v->pub->counter[(block & BLOCK_KERNEL) != 0];
		v->ctr[HOMENODE_INSTRUCTIONS] += n;
		if (unlikely(v->sibling != NULL))
			n = homenode_smt_issue(v, n);
		n += pause;
		v->ctr[HOMENODE_CYCLES] += n;
		/* L1 is tagged by virtual line: another address space starts cold. */
		if ((block & BLOCK_KERNEL) && is_context_switch(block, m->shared->switch_to))
			homenode_model_flush_l1(m, v);
	} else {
		n += pause;
		if (m->conf.off_instructions > 1) { /* a division for each block is a twentieth of a boot */
			n += v->off_rest;
			v->off_rest = n % m->conf.off_instructions;
			n /= m->conf.off_instructions;
		}
	}
	homenode_pass(v, n);
	__atomic_store_n(&v->pub->clock, v->clock, __ATOMIC_RELAXED);
	if (unlikely(v->clock >= __atomic_load_n(&homenode_horizon, __ATOMIC_RELAXED))) {
		homenode_clock_wait(m, v);
		if (qemu_plugin_version == API_OLD)
			homenode_code_quantum(v, __atomic_load_n(&m->shared->model_cycles, __ATOMIC_RELAXED));
	}
}

static void sample(struct homenode_vcpu *v, void *insn, uint64_t vaddr, uint64_t access, bool store)
{
	if (unlikely(v->pub->sampling))
		homenode_sample(v, (uint64_t)insn, vaddr, access | (store ? HOMENODE_ACCESS_STORE : 0));
}

/* User mode reaches no kernel address: this is the delivery of an interrupt or of a fault, some
 * eleven accesses. No instruction makes them, and they would otherwise be counted for the
 * interrupted program. */
static void *delivery(struct homenode_vcpu *v, void *insn)
{
	uint64_t *kernel = v->pub->counter[HOMENODE_KERNEL];

	if (likely(v->ctr == kernel))
		return insn;
	v->ctr = kernel;
	return NULL;
}

/* A hit in L1 that concerns no other core. */
static bool fast_hit(uint64_t slot, uint64_t line, bool store)
{
	return store ? slot == ((line + 1) | HOMENODE_L1_WRITE) : (slot | HOMENODE_L1_WRITE) == ((line + 1) | HOMENODE_L1_WRITE);
}

static inline __attribute__((always_inline)) void
one_access(unsigned int cpu, qemu_plugin_meminfo_t info, uint64_t vaddr, void *insn, bool atomic)
{
	struct homenode_model *m = &homenode_model;
	struct homenode_vcpu *v = &m->vcpu[cpu];
	uint64_t line = vaddr >> HOMENODE_LINE_SHIFT;
	bool store = qemu_plugin_mem_is_store(info);

	if (vaddr >> 63)
		insn = delivery(v, insn);
	v->ctr[HOMENODE_LOADS + store]++;
	if (likely(fast_hit(v->l1[line & m->l1_mask], line, store))) {
		sample(v, insn, vaddr, HOMENODE_ACCESS(HOMENODE_HIT_L1, 0xff, HOMENODE_L1_LATENCY), store);
		return;
	}
	struct qemu_plugin_hwaddr *hw = qemu_plugin_get_hwaddr(info, vaddr);
	if (!hw || qemu_plugin_hwaddr_is_io(hw)) {
		sample(v, insn, vaddr, HOMENODE_ACCESS(HOMENODE_HIT_UNKNOWN, 0xff, 0), store);
		return;
	}
	homenode_model_access(m, v, line, qemu_plugin_hwaddr_phys_addr(hw),
			      atomic ? HOMENODE_ATOMIC : (store ? HOMENODE_STORE : HOMENODE_LOAD));
	sample(v, insn, vaddr, v->access, store);
}

static void on_access(unsigned int cpu, qemu_plugin_meminfo_t info, uint64_t vaddr, void *insn)
{
	if (unlikely(__atomic_load_n(&homenode_on, __ATOMIC_RELAXED)))
		one_access(cpu, info, vaddr, insn, false);
}

/* A locked read-modify-write is reported once, as a store. */
static void on_atomic(unsigned int cpu, qemu_plugin_meminfo_t info, uint64_t vaddr, void *insn)
{
	if (likely(!__atomic_load_n(&homenode_on, __ATOMIC_RELAXED)))
		return;
	one_access(cpu, info, vaddr, insn, true);
	struct homenode_vcpu *v = &homenode_model.vcpu[cpu];
	v->ctr[HOMENODE_ATOMICS]++;
	v->ctr[HOMENODE_CYCLES] += homenode_model.conf.atomic_cycles;
	homenode_pass(v, homenode_model.conf.atomic_cycles);
}

/* The instruction's code; returns its length. */
static size_t instruction(const struct qemu_plugin_insn *insn, unsigned char to[CODE_MOST])
{
	size_t n = qemu_plugin_insn_size(insn);

	n = n < CODE_MOST ? n : CODE_MOST;
	if (qemu_plugin_version == API_NEW)
		return insn_data.copy(insn, to, n);
	memcpy(to, insn_data.code(insn), n);
	return n;
}

/* Does the instruction lock its memory operand: by prefix, or because it is XCHG,
 * which always does? (Intel SDM 2A: prefixes, REX, opcode.) */
static bool is_atomic(const struct qemu_plugin_insn *insn)
{
	unsigned char p[CODE_MOST];
	size_t n = instruction(insn, p);

	/* clang-format off */
	for (size_t i = 0; i < n; i++)
		switch (p[i]) {
		case 0xf0:
			return true;
		case 0x66: case 0x67: case 0xf2: case 0xf3:
		case 0x2e: case 0x36: case 0x3e: case 0x26: case 0x64: case 0x65:
		case 0x40 ... 0x4f: /* REX */
			continue;
		default:
			return p[i] == 0x86 || p[i] == 0x87;
		}
	/* clang-format on */
	return false;
}

/* QEMU ends a block after it. */
static bool is_pause(const struct qemu_plugin_insn *insn)
{
	unsigned char p[CODE_MOST];

	return instruction(insn, p) == 2 && p[0] == 0xf3 && p[1] == 0x90;
}

static void on_translate(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
	size_t n = qemu_plugin_tb_n_insns(tb);
	uint64_t addr = qemu_plugin_tb_vaddr(tb);
	uint64_t block = n | (addr >> 63 ? BLOCK_KERNEL : 0) | addr << ADDRESS_SHIFT;

	(void)id;
	struct homenode_vcpu *v = homenode_clock_self();
	if (v && qemu_plugin_version == API_OLD)
		homenode_code_translated(v, tb, insn_data.code);
	if (n && is_pause(qemu_plugin_tb_get_insn(tb, n - 1)))
		block |= BLOCK_PAUSE;
	qemu_plugin_register_vcpu_tb_exec_cb(tb, on_block, QEMU_CB_NO_REGS, (void *)block);
	for (size_t i = 0; i < n; i++) {
		struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);

		/* Separate R and W filters are wrong in 7.2: use RW, and ask each access. */
		qemu_plugin_register_vcpu_mem_cb(insn, is_atomic(insn) ? on_atomic : on_access,
						 QEMU_CB_NO_REGS, QEMU_MEM_RW,
						 (void *)qemu_plugin_insn_vaddr(insn));
	}
}

static int refuse(const char *what, const char *where, const char *why)
{
	fprintf(stderr, "homenode lab plugin: %s %s: %s\n", what, where ? where : "(not given)", why);
	return -1;
}

/* The first vCPU has been created: QEMU has just set its accelerator's table, and no timer of the
 * guest is set yet. */
static void on_init(qemu_plugin_id_t id, unsigned int cpu)
{
	char err[256];

	(void)id;
	if (cpu != 0)
		return;
	if (!homenode_host_take_over(err, sizeof(err)))
		refuse("take over the clock of", "this QEMU", err);
	else if (homenode_clock_start(&homenode_model))
		refuse("start the clock of", "this QEMU", "cannot create a thread");
	else
		return;
	_exit(1); /* not exit(): QEMU's own handlers expect a machine */
}

static void on_idle(qemu_plugin_id_t id, unsigned int cpu)
{
	(void)id;
	homenode_clock_idle(&homenode_model.vcpu[cpu]);
}

static void on_resume(qemu_plugin_id_t id, unsigned int cpu)
{
	(void)id;
	homenode_clock_resume(&homenode_model, &homenode_model.vcpu[cpu]);
}

static void on_quit(qemu_plugin_id_t id, void *udata)
{
	(void)id;
	(void)udata;
	homenode_clock_stop();
}

static struct homenode_lab_shared *map_shared(const char *path)
{
	int fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return NULL;
	void *p = mmap(NULL, HOMENODE_LAB_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	return p == MAP_FAILED ? NULL : p;
}

static const char *option(int argc, char **argv, const char *key)
{
	size_t n = strlen(key);

	for (int i = 0; i < argc; i++)
		if (!strncmp(argv[i], key, n) && argv[i][n] == '=')
			return argv[i] + n + 1;
	return NULL;
}

static uint64_t memory_bytes(const struct homenode_conf *c)
{
	uint64_t sum = 0;

	for (unsigned n = 0; n < c->nnode; n++)
		sum += c->node_bytes[n];
	return sum;
}

static void announce(struct homenode_lab_shared *s, const struct homenode_conf *c)
{
	s->version = HOMENODE_LAB_VERSION;
	s->ncpu = c->ncpu;
	s->nnode = c->nnode;
	s->nlink = c->nlink;
	s->mhz = c->mhz;
	s->time_factor = c->time_factor;
	s->llc_bytes = c->llc_bytes;
	__atomic_store_n(&s->magic, HOMENODE_LAB_MAGIC, __ATOMIC_RELEASE);
}

HOMENODE_EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const struct qemu_info *info,
					int argc, char **argv)
{
	const char *shm = option(argc, argv, "shm"), *conf = option(argc, argv, "conf"), *off = option(argc, argv, "off");
	struct homenode_model *m = &homenode_model;
	char err[256];

	FILE *f = conf ? fopen(conf, "r") : NULL;
	if (!f)
		return refuse("open configuration", conf, strerror(errno));
	int bad = homenode_conf_read(f, &m->conf, err, sizeof(err));
	fclose(f);
	if (bad)
		return refuse("read configuration", conf, err);
	if (!info->system_emulation || info->system.smp_vcpus != (int)m->conf.ncpu)
		return refuse("use configuration", conf, "QEMU's -smp differs from its cpu lines");
	m->conf.off_instructions = off ? (unsigned)strtoul(off, NULL, 10) : 1;
	if (!m->conf.off_instructions)
		return refuse("use option off", off, "want a number of instructions, 1 or more");
	if (!insn_data.symbol)
		return refuse("find", "qemu_plugin_insn_data", "this QEMU does not export it: use QEMU 7.2 or 10.0 as Debian builds it");
	if (qemu_plugin_version == API_OLD && !homenode_code_init())
		return refuse("find", "tb_invalidate_phys_range and qemu_ram_addr_from_host", "this QEMU does not export them: use QEMU 7.2 or 10.0 as Debian builds it");
	m->conf.guest_addresses = qemu_plugin_version == API_NEW;
	if (m->conf.guest_addresses && memory_bytes(&m->conf) >= LOW_MEMORY)
		return refuse("use configuration", conf, "its nodes have 3.5 GiB or more, some of it above 4 GiB: use QEMU 7.2, or smaller nodes");
	struct homenode_lab_shared *s = shm ? map_shared(shm) : NULL;
	if (!s)
		return refuse("map shared file", shm, strerror(errno));
	if (homenode_model_init(m, s))
		return refuse("allocate caches of", conf, strerror(ENOMEM));
	announce(s, &m->conf);
	qemu_plugin_register_vcpu_init_cb(id, on_init);
	qemu_plugin_register_vcpu_idle_cb(id, on_idle);
	qemu_plugin_register_vcpu_resume_cb(id, on_resume);
	qemu_plugin_register_vcpu_tb_trans_cb(id, on_translate);
	qemu_plugin_register_atexit_cb(id, on_quit, NULL);
	return 0;
}
