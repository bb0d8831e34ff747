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
 * 1. Each vCPU counts its own cycles.  T is the clock of the slowest that runs; one that
 *    was woken and has had no turn on the host yet is at T, one that is idle holds
 *    nothing back, and starts at T when it resumes.
 * 2. A vCPU that waits at the horizon advances T, one vCPU at a time.  T stops at each timer
 *    of the guest, and the timer runs there.
 * 3. A vCPU that waits passes a block when QEMU wants it out of it (an interrupt, an
 *    exclusive section): host.c hears of that.
 * 4. Where all are idle, T goes by the host's time × `idle_rate`, and no further than the
 *    next timer.  The host may be what the guest waits for: at rate 1 no time-out of the
 *    guest fires that would not have fired on real hardware.
 * 5. ON, a cycle is a cycle of the modelled core.  OFF, nothing is modelled, and so many
 *    instructions are a cycle as the option `off` says.
 * 6. Skew bounded by the quantum is too much where CPUs pass a line to and fro.  A vCPU
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
/* Guest time in ns, as the calling thread has it; never behind what any vCPU was told. */
int64_t homenode_clock_guest_ns(void);
void homenode_clock_set_ns(uint64_t ns); /* before the guest starts */

/* On the vCPU's own thread. */
void homenode_clock_wait(struct homenode_model *m, struct homenode_vcpu *v);
/* Number 6, before v touches a contended line. reads_own: to read what its core has, so
 * that news may be as late as they travel. False: no order here (kernel mode, OFF). */
bool homenode_clock_order(struct homenode_model *m, struct homenode_vcpu *v, bool reads_own);
void homenode_clock_idle(struct homenode_vcpu *v);
void homenode_clock_resume(struct homenode_model *m, struct homenode_vcpu *v);

/* On any thread: number 3. */
void homenode_clock_kick(struct homenode_vcpu *v);

#endif
