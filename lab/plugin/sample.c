// SPDX-License-Identifier: GPL-2.0-or-later
/* Access sampling: which accesses are recorded, and where. */
#include "model.h"

static bool qualifies(uint64_t filter, uint64_t access)
{
	if (!(filter & (access & HOMENODE_ACCESS_KERNEL ? HOMENODE_FILTER_KERNEL : HOMENODE_FILTER_USER)))
		return false;
	if (access & HOMENODE_ACCESS_STORE)
		return filter & HOMENODE_FILTER_STORES;
	return (filter & HOMENODE_FILTER_LOADS) &&
	       HOMENODE_ACCESS_LATENCY(access) >= HOMENODE_ACCESS_LATENCY(filter);
}

static void record(struct homenode_vcpu *v, unsigned which, uint64_t ip, uint64_t addr, uint64_t access)
{
	struct homenode_lab_vcpu *pub = v->pub;

	if (pub->sample_head - pub->sample_tail >= HOMENODE_SAMPLES) {
		pub->sampler[which].lost++;
		return;
	}
	v->ring[pub->sample_head++ % HOMENODE_SAMPLES] = (struct homenode_lab_sample){
		.ip = ip,
		.addr = addr,
		.clock = v->clock,
		.access = access | (uint64_t)which << 48,
	};
}

void homenode_sample(struct homenode_vcpu *v, uint64_t ip, uint64_t addr, uint64_t access)
{
	if (v->ctr == v->pub->counter[HOMENODE_KERNEL])
		access |= HOMENODE_ACCESS_KERNEL;
	for (unsigned i = 0; i < HOMENODE_SAMPLERS; i++) {
		struct homenode_lab_sampler *s = &v->pub->sampler[i];

		if (!(v->pub->sampling >> i & 1) || !qualifies(s->filter, access))
			continue;
		s->count++;
		if (!s->period || --s->left)
			continue;
		s->left = s->period;
		record(v, i, ip, addr, access);
	}
}
