// SPDX-License-Identifier: GPL-2.0
/* The lab's own PMUs, as data. */
#include <linux/device.h>

#include "pmu.h"

#define ONE(x)    BIT(HOMENODE_##x)
#define TWO(x, y) (ONE(x) | ONE(y))

/* The kernel's cycles and instructions need no counter, nor do these codes of theirs. */
#define COUNTS(code, what) { (code), 0, (what), HOMENODE_ANY }
#define FIXED(code, what)  { (code), 0, (what), HOMENODE_NO_COUNTER }
#define END                { HOMENODE_NO_CODE }

static const struct homenode_code raw[] = {
	FIXED(HOMENODE_EV_CYCLES, ONE(CYCLES)),
	FIXED(HOMENODE_EV_INSTRUCTIONS, ONE(INSTRUCTIONS)),
	COUNTS(HOMENODE_EV_LOADS, ONE(LOADS)),
	COUNTS(HOMENODE_EV_STORES, ONE(STORES)),
	COUNTS(HOMENODE_EV_L1_MISSES, ONE(L1_MISSES)),
	COUNTS(HOMENODE_EV_L2_MISSES, ONE(L2_MISSES)),
	COUNTS(HOMENODE_EV_LLC_MISSES, ONE(LLC_MISSES)),
	COUNTS(HOMENODE_EV_LOCAL_LOADS, ONE(LOCAL_LOADS)),
	COUNTS(HOMENODE_EV_REMOTE_LOADS, ONE(REMOTE_LOADS)),
	COUNTS(HOMENODE_EV_LOCAL_STORES, ONE(LOCAL_STORES)),
	COUNTS(HOMENODE_EV_REMOTE_STORES, ONE(REMOTE_STORES)),
	COUNTS(HOMENODE_EV_STALL_CYCLES, ONE(STALL_CYCLES)),
	COUNTS(HOMENODE_EV_ATOMICS, ONE(ATOMICS)),
	COUNTS(HOMENODE_EV_TRANSFERS_LOCAL, ONE(TRANSFERS_LOCAL)),
	COUNTS(HOMENODE_EV_TRANSFERS_REMOTE, ONE(TRANSFERS_REMOTE)),
	COUNTS(HOMENODE_EV_UPGRADES, ONE(UPGRADES)),
	COUNTS(HOMENODE_EV_INVALIDATIONS, ONE(INVALIDATIONS)),
	COUNTS(HOMENODE_EV_WRITEBACKS, ONE(WRITEBACKS)),
	COUNTS(HOMENODE_EV_UNCORE_REQUESTS, ONE(UNCORE_REQUESTS)),
	COUNTS(HOMENODE_EV_UNCORE_OUTSTANDING, ONE(UNCORE_OUTSTANDING)),
	COUNTS(HOMENODE_EV_UNCORE_CRITICAL, ONE(UNCORE_CRITICAL)),
	END,
};

static const struct homenode_code hardware[] = {
	FIXED(PERF_COUNT_HW_CPU_CYCLES, ONE(CYCLES)),
	FIXED(PERF_COUNT_HW_INSTRUCTIONS, ONE(INSTRUCTIONS)),
	COUNTS(PERF_COUNT_HW_CACHE_REFERENCES, ONE(L2_MISSES)),
	COUNTS(PERF_COUNT_HW_CACHE_MISSES, ONE(LLC_MISSES)),
	COUNTS(PERF_COUNT_HW_STALLED_CYCLES_BACKEND, ONE(STALL_CYCLES)),
	END,
};

#define CACHE(id, op, result)                                          \
	(PERF_COUNT_HW_CACHE_##id | PERF_COUNT_HW_CACHE_OP_##op << 8 | \
	 PERF_COUNT_HW_CACHE_RESULT_##result << 16)

/* node-loads counts all DRAM reads, node-load-misses the remote ones. */
static const struct homenode_code cache[] = {
	COUNTS(CACHE(NODE, READ, ACCESS), TWO(LOCAL_LOADS, REMOTE_LOADS)),
	COUNTS(CACHE(NODE, READ, MISS), ONE(REMOTE_LOADS)),
	COUNTS(CACHE(NODE, WRITE, ACCESS), TWO(LOCAL_STORES, REMOTE_STORES)),
	COUNTS(CACHE(NODE, WRITE, MISS), ONE(REMOTE_STORES)),
	COUNTS(CACHE(L1D, READ, ACCESS), ONE(LOADS)),
	COUNTS(CACHE(L1D, WRITE, ACCESS), ONE(STORES)),
	COUNTS(CACHE(LL, READ, ACCESS), ONE(L2_MISSES)),
	COUNTS(CACHE(LL, READ, MISS), TWO(LOCAL_LOADS, REMOTE_LOADS)),
	END,
};

/* cmask, inv and edge are ignored, with one exception: with any cmask, outstanding requests are
 * not summed. Instead the cycles with at least one are counted. */
static u64 code_of(u64 config)
{
	u64 code = config & 0xffff;

	if (code == HOMENODE_EV_UNCORE_OUTSTANDING && (config >> 24 & 0xff))
		return HOMENODE_EV_UNCORE_CRITICAL;
	return code;
}

static struct attribute *format[] = {
	HOMENODE_FILE("event", "config:0-7"),
	HOMENODE_FILE("umask", "config:8-15"),
	HOMENODE_FILE("cmask", "config:24-31"),
	HOMENODE_FILE("ldlat", "config1:0-15"),
	NULL,
};

/* The first two have the names that perf mem looks for. The others have the load program's names,
 * where perf's own names are unclear. */
static struct attribute *events[] = {
	HOMENODE_FILE("mem-loads", "event=0xcd,umask=0x1,ldlat=3"),
	HOMENODE_FILE("mem-stores", "event=0xd0,umask=0x82"),
	HOMENODE_FILE("local-loads", "event=0xd3,umask=0x1"),
	HOMENODE_FILE("remote-loads", "event=0xd3,umask=0x2"),
	HOMENODE_FILE("local-stores", "event=0xd3,umask=0x10"),
	HOMENODE_FILE("remote-stores", "event=0xd3,umask=0x20"),
	HOMENODE_FILE("stall-cycles", "event=0xa3,umask=0x14"),
	HOMENODE_FILE("uncore-requests", "event=0xb0,umask=0x80"),
	HOMENODE_FILE("uncore-outstanding", "event=0x60,umask=0x8"),
	HOMENODE_FILE("uncore-critical", "event=0x60,umask=0x8,cmask=0x1"),
	HOMENODE_FILE("transfers-local", "event=0xd2,umask=0x4"),
	HOMENODE_FILE("transfers-remote", "event=0xd3,umask=0x4"),
	HOMENODE_FILE("upgrades", "event=0xd3,umask=0x40"),
	HOMENODE_FILE("invalidations", "event=0xd3,umask=0x80"),
	HOMENODE_FILE("atomics", "event=0xd0,umask=0x21"),
	HOMENODE_FILE("writebacks", "event=0xb0,umask=0x40"),
	NULL,
};

/* homenode knows the lab by this file. */
static struct attribute *identifier[] = { HOMENODE_FILE("identifier", "homenode-lab"), NULL };
static const struct attribute_group identifier_group = { .attrs = identifier };

static const struct attribute_group format_group = { .name = "format", .attrs = format };
static const struct attribute_group events_group = { .name = "events", .attrs = events };
static const struct attribute_group *groups[] = { &format_group, &events_group, &identifier_group, NULL };

#define OF_THE_LAB                                                            \
	.nodes = true, .config_bits = ~0ULL, .register_bits = ~0ULL,          \
	.code_of = code_of, .raw = raw, .groups = groups

/* counters: Ice Lake-SP's general counters of a logical CPU; Skylake-SP with SMT has 4. */
static const struct homenode_kind core = {
	.name = "cpu",
	.type = PERF_TYPE_RAW,
	.context = perf_hw_context,
	.generic = true,
	.counters = 8,
	.hardware = hardware,
	.cache = cache,
	.loads = HOMENODE_EV_LOAD_LATENCY,
	.stores = HOMENODE_EV_STORES,
	.source = homenode_intel_source,
	OF_THE_LAB,
};

/* In the software events' context: its events never wait, fit any group, and take nothing from
 * the PMU that is tested. */
const struct homenode_kind homenode_own_kind = {
	.name = "homenode_lab",
	.type = -1,
	.context = perf_sw_context,
	.unlimited = true,
	OF_THE_LAB,
};

static const struct homenode_code controller_codes[] = {
	{ HOMENODE_IMC_CLOCKTICKS, 0, HOMENODE_TICKS },
	{ HOMENODE_IMC_CAS_READ, 0, HOMENODE_LINES_READ },
	{ HOMENODE_IMC_CAS_WRITE, 0, HOMENODE_LINES_WRITTEN },
	{ HOMENODE_IMC_RPQ_NOT_EMPTY, 0, HOMENODE_BUSY_TICKS },
	END,
};

static struct attribute *controller_format[] = {
	HOMENODE_FILE("event", "config:0-7"),
	HOMENODE_FILE("umask", "config:8-15"),
	NULL,
};
static struct attribute *controller_events[] = {
	HOMENODE_FILE("clockticks", "event=0x0"),
	HOMENODE_FILE("cas_count_read", "event=0x4,umask=0x3"),
	HOMENODE_FILE("cas_count_read.scale", "6.103515625e-5"),
	HOMENODE_FILE("cas_count_read.unit", "MiB"),
	HOMENODE_FILE("cas_count_write", "event=0x4,umask=0xc"),
	HOMENODE_FILE("cas_count_write.scale", "6.103515625e-5"),
	HOMENODE_FILE("cas_count_write.unit", "MiB"),
	HOMENODE_FILE("rpq_not_empty", "event=0x11"),
	NULL,
};
static const struct attribute_group controller_format_group = { .name = "format", .attrs = controller_format };
static const struct attribute_group controller_events_group = { .name = "events", .attrs = controller_events };
static const struct attribute_group *controller_groups[] = {
	&controller_format_group,
	&controller_events_group,
	&homenode_cpumask_group,
	&identifier_group,
	NULL,
};

static const struct homenode_uncore controllers = {
	.name = "uncore_imc_%u",
	.channels = 1,
	.config_bits = ~0ULL,
	.codes = controller_codes,
	.groups = controller_groups,
};

const struct homenode_personality homenode_lab_personality = { .name = "lab", .core = &core, .uncore = &controllers };
