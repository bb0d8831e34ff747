/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that is touched once and kept until the end: it fills a node. */
#include "load.h"

#define HOLD_NAP_US 10000

static void hold_work(struct homenode_worker *w)
{
	homenode_tally_look(w);
	while (!homenode_stop.set)
		homenode_sleep_us(HOLD_NAP_US);
	homenode_tally_look(w);
}

const struct homenode_mode homenode_hold = {
	.name = "hold",
	.work = hold_work,
};
