// SPDX-License-Identifier: GPL-2.0
/*
 * CPUs that the guest's PMUs can look like, as data: names, files and rules of Linux' drivers
 * (arch/x86/events, drivers/perf), and what of the model each code counts. The codes are those that
 * a table of homenode's names (internal/event/tables), and some beside them.
 *
 * A prefetcher, a sibling thread and a second cluster of a package are not in the model: what only
 * they would do is counted as none.
 */
#include <linux/cpumask.h>
#include <linux/device.h>

#include "pmu.h"

#define OF(x) BIT(HOMENODE_##x)
#define END   { HOMENODE_NO_CODE }

/* Reads of DRAM into a core's caches, those for writing included. */
#define LOCAL_READS  (OF(LOCAL_LOADS) | OF(LOCAL_STORES))
#define REMOTE_READS (OF(REMOTE_LOADS) | OF(REMOTE_STORES))

#define GROUP(var, folder, ...)                                            \
	static struct attribute *var##_files[] = { __VA_ARGS__, NULL };    \
	static const struct attribute_group var = { .name = (folder), .attrs = var##_files }

#define GROUPS(var, ...) static const struct attribute_group *var[] = { __VA_ARGS__, NULL }

/*
 * Sapphire Rapids, Linux 6.1. Which counters an event can have is from intel_spr_event_constraints:
 * codes below 0x90 and those of 0xd0 to 0xdf are restricted to counters 0 to 3, 0x2e and 0x3c are
 * not. The two registers are shared by events of equal value, and by the sibling thread, which is
 * left out here. The leader of load samples is from PMU_FL_MEM_LOADS_AUX.
 */
#define SPR(code, what, class) { (code), 0, (what), HOMENODE_##class }
#define SPR_OCR(config1, what)                               \
	{ 0x012a, (config1), (what), HOMENODE_LOW_FOUR },    \
	{ 0x012b, (config1), (what), HOMENODE_LOW_FOUR }

static const struct homenode_code spr_raw[] = {
	SPR(0x003c, OF(CYCLES), NO_COUNTER), /* CPU_CLK_UNHALTED.THREAD */
	SPR(0x00c0, OF(INSTRUCTIONS), NO_COUNTER), /* INST_RETIRED.ANY */
	SPR(0x050021a6, OF(STALL_CYCLES), ANY), /* EXE_ACTIVITY.BOUND_ON_LOADS */
	SPR(0x03000347, OF(STALL_CYCLES), LOW_FOUR), /* MEMORY_ACTIVITY.STALLS_L1D_MISS */
	SPR_OCR(0x104004477, LOCAL_READS), /* OCR.READS_TO_CORE.LOCAL_DRAM */
	SPR_OCR(0x738004477, REMOTE_READS), /* …REMOTE_DRAM | …SNC_DRAM */
	SPR_OCR(0x730004477, REMOTE_READS), /* …REMOTE_DRAM */
	SPR_OCR(0x708004477, 0), /* …SNC_DRAM */
	SPR(0x01d3, OF(LOCAL_LOADS), LOW_FOUR), /* MEM_LOAD_L3_MISS_RETIRED.LOCAL_DRAM */
	SPR(0x02d3, OF(REMOTE_LOADS), LOW_FOUR), /* MEM_LOAD_L3_MISS_RETIRED.REMOTE_DRAM */
	SPR(0x2724, OF(L2_MISSES), LOW_FOUR), /* L2_RQSTS.ALL_DEMAND_MISS */
	SPR(0x412e, OF(LLC_MISSES), ANY), /* LONGEST_LAT_CACHE.MISS */
	SPR(0x0821, OF(UNCORE_REQUESTS), LOW_FOUR), /* OFFCORE_REQUESTS.DATA_RD */
	SPR(0x8021, OF(UNCORE_REQUESTS), LOW_FOUR), /* OFFCORE_REQUESTS.ALL_REQUESTS */
	SPR(0x0820, OF(UNCORE_OUTSTANDING), LOW_FOUR), /* OFFCORE_REQUESTS_OUTSTANDING.DATA_RD */
	SPR(0x01000820, OF(UNCORE_CRITICAL), LOW_FOUR), /* …CYCLES_WITH_DATA_RD */
	SPR(0x8203, 0, LOW_FOUR), /* LD_BLOCKS.STORE_FORWARD: not in the model */
	END,
};

static const struct homenode_code spr_hardware[] = {
	SPR(PERF_COUNT_HW_CPU_CYCLES, OF(CYCLES), NO_COUNTER),
	SPR(PERF_COUNT_HW_INSTRUCTIONS, OF(INSTRUCTIONS), NO_COUNTER),
	SPR(PERF_COUNT_HW_CACHE_MISSES, OF(LLC_MISSES), ANY),
	END,
};

GROUP(spr_format, "format", HOMENODE_FILE("event", "config:0-7"), HOMENODE_FILE("umask", "config:8-15"),
      HOMENODE_FILE("edge", "config:18"), HOMENODE_FILE("pc", "config:19"), HOMENODE_FILE("inv", "config:23"),
      HOMENODE_FILE("cmask", "config:24-31"), HOMENODE_FILE("offcore_rsp", "config1:0-63"),
      HOMENODE_FILE("ldlat", "config1:0-15"), HOMENODE_FILE("frontend", "config1:0-23"));
GROUP(spr_events, "events", HOMENODE_FILE("mem-loads", "event=0xcd,umask=0x1,ldlat=3"),
      HOMENODE_FILE("mem-stores", "event=0xcd,umask=0x2"), HOMENODE_FILE("mem-loads-aux", "event=0x03,umask=0x82"));
GROUP(spr_caps, "caps", HOMENODE_FILE("max_precise", "3"), HOMENODE_FILE("pmu_name", "sapphire_rapids"));
GROUPS(spr_groups, &spr_format, &spr_events, &spr_caps);

static const struct homenode_kind spr_core = {
	.name = "cpu",
	.type = PERF_TYPE_RAW,
	.context = perf_hw_context,
	.generic = true,
	.counters = 8,
	.registers = 2,
	.config_bits = 0xff84ffff, /* X86_RAW_EVENT_MASK */
	.register_bits = 0x3fffffffffULL,
	.raw = spr_raw,
	.hardware = spr_hardware,
	.loads = 0x01cd,
	.loads_class = HOMENODE_ANY,
	.stores = 0x02cd,
	.stores_class = HOMENODE_FIRST,
	.auxiliary = 0x8203,
	.source = homenode_intel_source,
	.groups = spr_groups,
};

/* Eight channels in a package; 6.1 names no events. umask has two ranges (spr_uncore_raw). */
static const struct homenode_code spr_imc_codes[] = {
	{ 0x0001, 0, HOMENODE_TICKS }, /* UNC_M_CLOCKTICKS */
	{ 0xcf05, 0, HOMENODE_LINES_READ }, /* UNC_M_CAS_COUNT.RD */
	{ 0xf005, 0, HOMENODE_LINES_WRITTEN }, /* UNC_M_CAS_COUNT.WR */
	END,
};

GROUP(spr_imc_format, "format", HOMENODE_FILE("event", "config:0-7"), HOMENODE_FILE("umask", "config:8-15,32-55"),
      HOMENODE_FILE("edge", "config:18"), HOMENODE_FILE("inv", "config:23"), HOMENODE_FILE("thresh", "config:24-31"));
GROUPS(spr_imc_groups, &spr_imc_format, &homenode_cpumask_group);

static const struct homenode_uncore spr_imc = {
	.name = "uncore_imc_%u",
	.channels = 8,
	.everywhere = true,
	.config_bits = 0x00ffffffff84ffffULL,
	.codes = spr_imc_codes,
	.groups = spr_imc_groups,
};

static const struct homenode_personality sapphire_rapids = { "sapphire-rapids", &spr_core, NULL, &spr_imc };

/*
 * Zen 4. It has no fixed counters: cycles and instructions take two of the six. Its IBS is that of
 * Linux 6.1, which samples CPUs and no tasks (perf_invalid_context); its memory controllers are
 * those of 6.7, twelve in a package, each with a PMU of its own and no events.
 */
#define ZEN(code, what) { (code), 0, (what), HOMENODE_ANY }

static const struct homenode_code zen4_raw[] = {
	ZEN(0x0076, OF(CYCLES)), /* ls_not_halted_cyc */
	ZEN(0x00c0, OF(INSTRUCTIONS)), /* ex_ret_instr */
	ZEN(0xa2d6, OF(STALL_CYCLES)), /* ex_no_retire.load_not_complete */
	ZEN(0x0844, LOCAL_READS), /* ls_any_fills_from_sys.dram_io_near */
	ZEN(0x4044, REMOTE_READS), /* ….dram_io_far */
	ZEN(0x5c44, LOCAL_READS | REMOTE_READS | OF(TRANSFERS_LOCAL) | OF(TRANSFERS_REMOTE)), /* with near_cache, far_cache */
	ZEN(0x0843, LOCAL_READS), /* ls_dmnd_fills_from_sys.dram_io_near */
	ZEN(0x4043, REMOTE_READS), /* ….dram_io_far */
	ZEN(0x0964, OF(L2_MISSES)), /* l2_cache_req_stat.ic_dc_miss_in_l2 */
	ZEN(0xff71, 0), /* l2_pf_miss_l2_hit_l3.all */
	ZEN(0xff72, 0), /* l2_pf_miss_l2_l3.all */
	END,
};

static const struct homenode_code zen4_hardware[] = {
	ZEN(PERF_COUNT_HW_CPU_CYCLES, OF(CYCLES)),
	ZEN(PERF_COUNT_HW_INSTRUCTIONS, OF(INSTRUCTIONS)),
	ZEN(PERF_COUNT_HW_CACHE_MISSES, OF(L2_MISSES)),
	END,
};

GROUP(zen4_format, "format", HOMENODE_FILE("event", "config:0-7,32-35"), HOMENODE_FILE("umask", "config:8-15"),
      HOMENODE_FILE("edge", "config:18"), HOMENODE_FILE("inv", "config:23"), HOMENODE_FILE("cmask", "config:24-31"));
GROUPS(zen4_groups, &zen4_format);

static const struct homenode_kind zen4_core = {
	.name = "cpu",
	.type = PERF_TYPE_RAW,
	.context = perf_hw_context,
	.generic = true,
	.counters = 6,
	.config_bits = 0x0000000fff84ffffULL, /* AMD64_RAW_EVENT_MASK */
	.raw = zen4_raw,
	.hardware = zen4_hardware,
	.groups = zen4_groups,
};

GROUP(ibs_format, "format", HOMENODE_FILE("cnt_ctl", "config:19"), HOMENODE_FILE("l3missonly", "config:16"));
GROUP(ibs_caps, "caps", HOMENODE_FILE("zen4_ibs_extensions", "1"));
GROUPS(ibs_groups, &ibs_format, &ibs_caps);

/* config_bits: cnt_ctl. l3missonly would be accepted by hardware, and is not in the lab. */
static const struct homenode_kind ibs_op = {
	.name = "ibs_op",
	.type = -1,
	.context = perf_invalid_context,
	.ops = true,
	.config_bits = BIT(19),
	.source = homenode_amd_source,
	.groups = ibs_groups,
};

static const struct homenode_code umc_codes[] = {
	{ 0x010a, 0, HOMENODE_LINES_READ }, /* umc_cas_cmd.rd */
	{ 0x020a, 0, HOMENODE_LINES_WRITTEN }, /* umc_cas_cmd.wr */
	END,
};

GROUP(umc_format, "format", HOMENODE_FILE("event", "config:0-7"), HOMENODE_FILE("rdwrmask", "config:8-9"));
GROUPS(umc_groups, &umc_format, &homenode_cpumask_group);

static const struct homenode_uncore umc = {
	.name = "amd_umc_%u",
	.channels = 12,
	.config_bits = 0x3ff,
	.codes = umc_codes,
	.groups = umc_groups,
};

static const struct homenode_personality zen4 = { "zen-4", &zen4_core, &ibs_op, &umc };

/*
 * Neoverse N2. No PMU has PERF_TYPE_RAW: the kernel offers such an event to every PMU, and the
 * CPU's takes it. Cycles have a counter of their own, instructions one of the six. A mesh's PMU
 * (arm_cmn) counts requests to memory, reads and writes together; a package has one mesh.
 */
static const struct homenode_code n2_raw[] = {
	{ 0x0011, 0, OF(CYCLES), HOMENODE_NO_COUNTER }, /* CPU_CYCLES */
	{ 0x0008, 0, OF(INSTRUCTIONS), HOMENODE_ANY }, /* INST_RETIRED */
	{ 0x0017, 0, OF(L2_MISSES), HOMENODE_ANY }, /* L2D_CACHE_REFILL */
	{ 0x0037, 0, OF(LOCAL_LOADS) | OF(REMOTE_LOADS), HOMENODE_ANY }, /* LL_CACHE_MISS_RD */
	{ 0x4005, 0, OF(STALL_CYCLES), HOMENODE_ANY }, /* STALL_BACKEND_MEM */
	END,
};

static const struct homenode_code n2_hardware[] = {
	{ PERF_COUNT_HW_CPU_CYCLES, 0, OF(CYCLES), HOMENODE_NO_COUNTER },
	{ PERF_COUNT_HW_INSTRUCTIONS, 0, OF(INSTRUCTIONS), HOMENODE_ANY },
	END,
};

static ssize_t cpus_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	return cpumap_print_to_pagebuf(true, buf, cpu_possible_mask);
}
static DEVICE_ATTR_RO(cpus);

GROUP(n2_format, "format", HOMENODE_FILE("event", "config:0-15"), HOMENODE_FILE("long", "config1:0"));
GROUP(n2_events, "events", HOMENODE_FILE("cpu_cycles", "event=0x0011"), HOMENODE_FILE("inst_retired", "event=0x0008"),
      HOMENODE_FILE("l2d_cache_refill", "event=0x0017"), HOMENODE_FILE("ll_cache_miss_rd", "event=0x0037"),
      HOMENODE_FILE("stall_backend_mem", "event=0x4005"));
GROUP(n2_cpus, NULL, &dev_attr_cpus.attr);
GROUPS(n2_groups, &n2_format, &n2_events, &n2_cpus);

static const struct homenode_kind n2_core = {
	.name = "armv8_pmuv3_0",
	.type = -1,
	.context = perf_hw_context,
	.generic = true,
	.counters = 6,
	.config_bits = 0xffff,
	.raw = n2_raw,
	.hardware = n2_hardware,
	.groups = n2_groups,
};

static DEVICE_ATTR(cpumask, 0444, cpus_show, NULL);

/* Linux 6.1. caps of a CPU with counters of 12 bits and periods from 1,024 on. */
GROUP(spe_format, "format", HOMENODE_FILE("ts_enable", "config:0"), HOMENODE_FILE("pa_enable", "config:1"),
      HOMENODE_FILE("pct_enable", "config:2"), HOMENODE_FILE("jitter", "config:16"),
      HOMENODE_FILE("branch_filter", "config:32"), HOMENODE_FILE("load_filter", "config:33"),
      HOMENODE_FILE("store_filter", "config:34"), HOMENODE_FILE("event_filter", "config1:0-63"),
      HOMENODE_FILE("min_latency", "config2:0-11"));
GROUP(spe_caps, "caps", HOMENODE_FILE("arch_inst", "0"), HOMENODE_FILE("ernd", "0"), HOMENODE_FILE("count_size", "12"),
      HOMENODE_FILE("min_interval", "1024"));
GROUP(spe_cpus, NULL, &dev_attr_cpumask.attr);
GROUPS(spe_groups, &spe_format, &spe_caps, &spe_cpus);

/* config_bits: times, jitter (the lab's period is exact), loads and stores. Physical addresses,
 * physical times and branches would be accepted by hardware, and are not in the lab. */
static const struct homenode_kind spe = {
	.name = "arm_spe_0",
	.type = -1,
	.context = perf_sw_context,
	.ops = true,
	.trace = true,
	.config_bits = BIT(0) | BIT(16) | HOMENODE_SPE_LOADS | HOMENODE_SPE_STORES,
	.groups = spe_groups,
};

static const struct homenode_code cmn_codes[] = {
	{ 0x000d0005, 0, HOMENODE_LINES_READ | HOMENODE_LINES_WRITTEN }, /* hnf_mc_reqs */
	END,
};

GROUP(cmn_format, "format", HOMENODE_FILE("type", "config:0-15"), HOMENODE_FILE("eventid", "config:16-26"),
      HOMENODE_FILE("occupid", "config:27-30"), HOMENODE_FILE("bynodeid", "config:31"),
      HOMENODE_FILE("nodeid", "config:32-47"));
GROUP(cmn_events, "events", HOMENODE_FILE("hnf_mc_reqs", "type=0x5,eventid=0xd"));
GROUPS(cmn_groups, &cmn_format, &cmn_events, &homenode_cpumask_group);

static const struct homenode_uncore cmn = {
	.name = "arm_cmn_%u",
	.channels = 1,
	.config_bits = 0xffffffffffffULL,
	.codes = cmn_codes,
	.groups = cmn_groups,
};

static const struct homenode_personality neoverse_n2 = { "neoverse-n2", &n2_core, &spe, &cmn };

const struct homenode_personality *const homenode_personalities[] = {
	&homenode_lab_personality,
	&sapphire_rapids,
	&zen4,
	&neoverse_n2,
	NULL,
};
