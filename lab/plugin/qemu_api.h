/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The part of QEMU's plugin API that the lab uses: version 1 (QEMU 7.2) and version 4
 * (QEMU 9.2 and newer, which refuse 1).  Debian ships no header for 7.2; these are our own
 * declarations of the documented functions (docs/devel/tcg-plugins.rst).  All but one that the
 * lab uses are the same in both; the exception is qemu_plugin_insn_data.
 */
#ifndef HOMENODE_QEMU_API_H
#define HOMENODE_QEMU_API_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HOMENODE_EXPORT __attribute__((visibility("default")))

typedef uint64_t qemu_plugin_id_t;
typedef uint32_t qemu_plugin_meminfo_t;

struct qemu_plugin_tb;
struct qemu_plugin_insn;
struct qemu_plugin_hwaddr;

struct qemu_info {
	const char *target_name;
	struct {
		int min;
		int cur;
	} version;
	bool system_emulation;
	union {
		struct {
			int smp_vcpus;
			int max_vcpus;
		} system;
	};
};

enum { QEMU_CB_NO_REGS = 0 };
enum { QEMU_MEM_R = 1,
       QEMU_MEM_W = 2,
       QEMU_MEM_RW = 3,
};

typedef void (*qemu_vcpu_cb)(qemu_plugin_id_t id, unsigned int vcpu);
typedef void (*qemu_vcpu_udata_cb)(unsigned int vcpu, void *udata);
typedef void (*qemu_mem_cb)(unsigned int vcpu, qemu_plugin_meminfo_t info,
			    uint64_t vaddr, void *udata);
typedef void (*qemu_tb_cb)(qemu_plugin_id_t id, struct qemu_plugin_tb *tb);
typedef void (*qemu_udata_cb)(qemu_plugin_id_t id, void *udata);

void qemu_plugin_register_vcpu_init_cb(qemu_plugin_id_t id, qemu_vcpu_cb cb);
void qemu_plugin_register_vcpu_idle_cb(qemu_plugin_id_t id, qemu_vcpu_cb cb);
void qemu_plugin_register_vcpu_resume_cb(qemu_plugin_id_t id, qemu_vcpu_cb cb);
void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t id, qemu_tb_cb cb);
void qemu_plugin_register_atexit_cb(qemu_plugin_id_t id, qemu_udata_cb cb,
				    void *udata);
void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb *tb,
					  qemu_vcpu_udata_cb cb, int flags,
					  void *udata);
void qemu_plugin_register_vcpu_mem_cb(struct qemu_plugin_insn *insn,
				      qemu_mem_cb cb, int flags, int rw,
				      void *udata);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *tb);
uint64_t qemu_plugin_tb_vaddr(const struct qemu_plugin_tb *tb);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *tb,
						 size_t idx);
uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *insn);
void *qemu_plugin_insn_haddr(const struct qemu_plugin_insn *insn); /* in the host's memory; NULL: not RAM */
/* qemu_plugin_insn_data: version 1 returns the code, 4 copies it and returns how many bytes. */
typedef const void *qemu_insn_code(const struct qemu_plugin_insn *insn);
typedef size_t qemu_insn_copy(const struct qemu_plugin_insn *insn, void *to, size_t len);
size_t qemu_plugin_insn_size(const struct qemu_plugin_insn *insn);
bool qemu_plugin_mem_is_store(qemu_plugin_meminfo_t info);
struct qemu_plugin_hwaddr *qemu_plugin_get_hwaddr(qemu_plugin_meminfo_t info,
						  uint64_t vaddr);
bool qemu_plugin_hwaddr_is_io(const struct qemu_plugin_hwaddr *haddr);
uint64_t qemu_plugin_hwaddr_phys_addr(const struct qemu_plugin_hwaddr *haddr);
void qemu_plugin_outs(const char *string);

#endif
