/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The model's clock T, which is the guest's time: every timer, tick, sleep and
 * time-stamp of the guest follows it, in every state.  A slow host makes a run longer,
 * never different.
 *
 *	vCPU clocks ──► T = slowest that runs ──► guest time = T / mhz
 *	                │ never past the guest's next timer before that has run
 *	                └ horizon = T + quantum: a vCPU that got there waits
 *
 * 1. Each vCPU counts its own cycles.  T is the clock of the slowest one that runs. One that was
 *    woken and has had no turn on the host yet is at T. An idle one does not hold T back, and
 *    starts at T when it resumes.
 * 2. A vCPU that waits at the horizon advances T, one vCPU at a time.  T stops at each timer
 *    of the guest, and the timer runs there.
 * 3. A waiting vCPU passes a block when QEMU wants it to leave the block (an interrupt, an
 *    exclusive section). host.c is told of that.
 * 4. While all are idle, T follows the host's time × `idle_rate`, up to the next timer. The guest
 *    may be waiting for the host: at rate 1 no time-out of the guest fires that would not have
 *    fired on real hardware.
 * 5. ON, a cycle is a cycle of the modelled core.  OFF, nothing is modelled, and a cycle is as
 *    many instructions as the option `off` says.
 * 6. A skew of a quantum is too much where CPUs pass a line back and forth.  A vCPU
 *    that touches a contended line (directory.c) waits until every other vCPU that did so
 *    lately has reached the same clock: those lines see their accesses in the order of
 *    model time.
 */
#ifndef HOMENODE_CLOCK_H
#define HOMENODE_CLOCK_H

#include "host.h"
#include "model.h"

extern uint64_t homenode_horizon; /* clock of a vCPU at which it waits */
extern uint64_t homenode_on;      /* the model is ON */

int homenode_clock_start(struct homenode_model *m);
void homenode_clock_stop(void);
/* The guest starts: from now on QEMU's timers count. */
void homenode_clock_host(const struct homenode_host *host);
/* Guest time in ns for the calling thread; never earlier than that given to any vCPU. */
int64_t homenode_clock_guest_ns(void);
void homenode_clock_set_ns(uint64_t ns); /* before the guest starts */

/* On the vCPU's own thread. */
struct homenode_vcpu *homenode_clock_self(void); /* NULL on other threads, and before its first block */
void homenode_clock_wait(struct homenode_model *m, struct homenode_vcpu *v);
/* Number 6, before v touches a contended line. reads_own: a read of what its core has, which may
 * see others' writes as late as they arrive. False: no order here (kernel mode, OFF). */
bool homenode_clock_order(struct homenode_model *m, struct homenode_vcpu *v, bool reads_own);
void homenode_clock_idle(struct homenode_vcpu *v);
void homenode_clock_resume(struct homenode_model *m, struct homenode_vcpu *v);

/* On any thread: number 3. */
void homenode_clock_kick(struct homenode_vcpu *v);

#endif
