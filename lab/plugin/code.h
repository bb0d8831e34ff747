/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Code that is changed while QEMU translates it.
 *
 * QEMU before 8.1 reads a block's code first, and only then watches its page for writes. A
 * write by another vCPU in between goes unnoticed: the old code runs for ever. Linux patches
 * its code at boot, and whenever perf, BPF or tracing are switched on. A vCPU that had
 * translated the breakpoint of a patch that was already over took it again and again, and the
 * boot hung. QEMU 8.1 and newer lock the page before they read it.
 *
 * So the code is compared with memory, and where they differ, its translations are dropped:
 *
 *  1. at the first block that the vCPU runs afterwards, when the page is watched;
 *  2. when the clock has advanced further than vCPUs may be apart. A store that was about to be
 *     made while the page was not watched yet has been made then: every vCPU has ended its
 *     block. A vCPU that sleeps compares nothing, and another one may run what it translated,
 *     so one that is awake does it for both.
 */
#ifndef HOMENODE_CODE_H
#define HOMENODE_CODE_H

#include "model.h"
#include "qemu_api.h"

/* False: this QEMU lacks what dropping translations needs. */
bool homenode_code_init(void);

/* On the thread of v: a block of v was translated from this code. */
void homenode_code_translated(struct homenode_vcpu *v, const struct qemu_plugin_tb *tb, qemu_insn_code *data);
/* Number 1; where v->unchecked is set. */
void homenode_code_check(struct homenode_vcpu *v);
/* Number 2, of v and of vCPUs that sleep: v waited for the clock, whose time T is t now. */
void homenode_code_quantum(struct homenode_vcpu *v, uint64_t t);

#endif
