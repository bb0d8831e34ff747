// SPDX-License-Identifier: Apache-2.0
/* Prints the offsets of the shared file's words; see schema/lab_layout.golden. */
#include "homenode_lab.h"
#include <stddef.h>
#include <stdio.h>

#define SAY(field) printf("%s %zu\n", #field, offsetof(struct homenode_lab_shared, field))
#define SAYV(field) printf("vcpu.%s %zu\n", #field, offsetof(struct homenode_lab_vcpu, field))

int main(void)
{
	printf("magic_value %llx\n", (unsigned long long)HOMENODE_LAB_MAGIC);
	printf("bytes %u\n", HOMENODE_LAB_BYTES);
	SAY(magic);
	SAY(version);
	SAY(ncpu);
	SAY(nnode);
	SAY(nlink);
	SAY(mhz);
	SAY(time_factor);
	SAY(llc_bytes);
	SAY(state);
	SAY(phase);
	SAY(switch_to);
	SAY(idle_rate);
	SAY(applied);
	SAY(model_cycles);
	SAY(heartbeat);
	SAY(mc_util_permille);
	SAY(link_util_permille);
	SAY(mc_lines);
	SAY(link_lines);
	SAY(mc_busy_cycles);
	SAY(mc_ticks);
	SAY(vcpu);
	printf("sizeof_vcpu %zu\n", sizeof(struct homenode_lab_vcpu));
	SAYV(counter);
	SAYV(dram);
	SAYV(writeback);
	SAYV(transfer);
	SAYV(clock);
	SAYV(running);
	SAYV(sampling);
	SAYV(sample_head);
	SAYV(sample_tail);
	SAYV(ordered);
	SAYV(sampler);
	SAYV(pqr);
	printf("sizeof_sampler %zu\n", sizeof(struct homenode_lab_sampler));
	SAY(ring);
	printf("sizeof_ring %zu\n", sizeof(((struct homenode_lab_shared *)0)->ring[0]));
	SAY(qos);
	SAY(ways);
	SAY(throttle);
	SAY(qos_applied);
	SAY(llc_ways);
	SAY(held);
	SAY(traffic);
	return 0;
}
