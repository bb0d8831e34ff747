/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * QEMU's clock becomes the model's.
 *
 * QEMU asks one table of operations, its accelerator's, for the guest's time
 * (QEMU_CLOCK_VIRTUAL) and for the time-stamp counter, and tells it when a vCPU has to
 * leave its block.  Debian's builds export the functions around that table; the plugin
 * puts its own operations there.  So timers, LAPIC, HPET and TSC follow the model's clock, and
 * with them every tick, sleep and period of the guest.
 *
 * The table's layout is not an interface: its offsets are read from the code of the
 * functions that use it, and a timer of known length is run before the guest starts.
 * A QEMU that fails this is refused with a message.
 */
#ifndef HOMENODE_HOST_H
#define HOMENODE_HOST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What the clock needs from QEMU. */
struct homenode_host {
	int64_t (*deadline_ns)(void);  /* until the guest's next timer, in guest time; -1: none */
	void (*run_timers)(void);      /* those that are due, under QEMU's big lock */
	bool (*has_work)(unsigned cpu); /* halted, with work pending */
};

/* Puts the clock in charge and checks that it is.  False: err says why not. */
bool homenode_host_take_over(char *err, size_t len);

#endif
