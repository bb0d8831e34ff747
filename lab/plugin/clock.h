/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The shared model clock and its controller thread.
 *
 * 1. Every ROUND the controller advances the clock T by the host time that
 *    passed × mhz, but never past the slowest running vCPU: a vCPU that the
 *    host starves slows the whole machine down instead of looking slow.
 * 2. A vCPU may run at most SLACK beyond T (the horizon); then it waits for the
 *    next round.  Skew between busy vCPUs is therefore bounded by SLACK.
 * 3. A halted vCPU does not hold the clock back; when it resumes, it starts
 *    at T: idle time is not saved up.
 *
 * 4. Skew bounded by SLACK is too much where CPUs pass a line to and fro. Who touches
 *    a contended line (directory.c) waits until every other vCPU that did so lately has
 *    reached the same clock: those lines see their accesses in the order of model time.
 *
 * In COUNT nobody waits, and T follows the host clock. WARM is PACE but for the
 * CPUs kept for daemons, which run as fast as the host lets them: their periods
 * are seconds of guest time, in which a paced CPU gets as little done as real
 * ones do in a fiftieth of that.
 */
#ifndef HOMENODE_CLOCK_H
#define HOMENODE_CLOCK_H

#include "model.h"

/* Clock of a vCPU at which it has to look at the controller again.  0 while a
 * change of state waits for every running vCPU, UINT64_MAX while unpaced. */
extern uint64_t homenode_horizon;
extern uint64_t homenode_counting; /* 0 in OFF */
extern uint64_t homenode_paced;    /* PACE or WARM: vCPUs have a time in common */

/* Called on each vCPU's thread once: short turns on the host's CPUs. */
void homenode_clock_short_turns(void);
int homenode_clock_start(struct homenode_model *m);
void homenode_clock_stop(void);
void homenode_clock_wait(struct homenode_model *m, struct homenode_vcpu *v);
/* Number 4, before v touches a contended line. reads_own: to read what its core has, so
 * that news may be as late as they travel. False: no order here (kernel mode, unpaced). */
bool homenode_clock_order(struct homenode_model *m, struct homenode_vcpu *v, bool reads_own);
void homenode_clock_idle(struct homenode_vcpu *v);
void homenode_clock_resume(struct homenode_model *m, struct homenode_vcpu *v);

#endif
