/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "load.h"

static const char usage[] =
	"homenode-load MODE [options]: a load that counts its own work, by the lab's model clock or the wall clock\n"
	"\n"
	"  chase    dependent loads over a random cycle     --shared\n"
	"  stream   sequential lines                        --write | --triad\n"
	"  rao      private chase plus shared atomic adds   --sharing BYTES --share-every K\n"
	"  share    atomic adds, or stores, to lines that all write  --sharing BYTES --write\n"
	"  spin     registers and 1 KiB in L1   --pause (PAUSE after each of the 256 look-ups of an op)\n"
	"  hold     memory that is touched once and kept; no work   --open FILE --fork-when FILE\n"
	"  victim   times small operations on memory of several kinds\n"
	"           --loads N --file PATH --shared-bytes BYTES --file-every N --map-every N\n"
	"  server   requests of fixed work\n"
	"           open loop:   --rate R (per model-second) --queue Q\n"
	"           closed loop: --closed --think-us T\n"
	"           --short-share P --short-us A:B --long-us A:B --time-factor F\n"
	"           --loads-per-unit N --alu-per-unit N --unit-cycles N\n"
	"           --list-requests N (print the demand, do not run)\n"
	"\n"
	"  memory   --ws BYTES --extra BYTES --thp on|off|default --touch main|worker --bind-mem NODE\n"
	"           --interleave NODES (page by page, e.g. 0-1)\n"
	"           --file PATH (shared mappings of this file instead of private memory)\n"
	"  threads  --threads N (--workers N) --bind-cpu CPU (all) --cpus LIST (worker i on the i-th)\n"
	"  barriers --barrier N (threads meet every N ops and spin meanwhile; chase, stream, rao, share, spin)\n"
	"  length   --ops N --seconds S (model time), else until SIGTERM; --warm-laps L\n"
	"  disguise --vm (threads named as a virtual machine's; chase, stream, rao, spin)\n"
	"  harness  --name TEXT --out FILE --ready FILE --hold PHASE (--start-phase PHASE) --seed N\n"
	"           --count FILE (the work done so far, written 10 times a second)\n"
	"  counting --perf cycles,loads:uk,dram0,… (chase, stream, rao, share, spin): cycles instructions\n"
	"           loads stores l1-misses l2-misses llc-misses local-loads remote-loads local-stores\n"
	"           remote-stores stall-cycles uncore-requests uncore-outstanding uncore-critical\n"
	"           transfers-local transfers-remote upgrades invalidations atomics writebacks dram<NODE>\n"
	"  testing  --sysfs DIR (instead of /sys)\n"
	"\n"
	"homenode-load control off|on [--phase N]\n"
	"homenode-load status\n"
	"homenode-load touch --node N [--pages P] [--perf dram] [--bind-cpu CPU] [--out FILE]\n"
	"homenode-load pagecache --file PATH [--bytes BYTES] [--write] [--bind-cpu CPU]: fill the page cache\n"
	"homenode-load pages --pid P[,P] [--file PATH]…: bytes by kind and node\n"
	"homenode-load patch ROUNDS: a thread runs code that another one changes\n"
	"homenode-load peer migrate-pages PID FROM TO | write FILE TEXT: one call, timed\n"
	"homenode-load drop CAP[,CAP] COMMAND…: run it without these capabilities\n";

void homenode_fail(int code, const char *format, ...)
{
	static int failed;
	va_list args;

	if (__atomic_exchange_n(&failed, 1, __ATOMIC_SEQ_CST))
		for (;;)
			pause(); /* another thread is already reporting the reason */
	va_start(args, format);
	fputs("homenode-load: ", stderr);
	vfprintf(stderr, format, args);
	fputc('\n', stderr);
	va_end(args);
	_exit(code);
}

static double time_factor(const struct homenode_run *run)
{
	if (run->opt.time_factor > 0)
		return run->opt.time_factor;
	if (!run->clock.lab)
		return 1;
	if (run->mode->has_requests && run->clock.lab->time_factor == 0)
		homenode_fail(1, "read the lab's time factor: it is 0; give --time-factor or start QEMU with one");
	return (double)run->clock.lab->time_factor;
}

static int load_main(int argc, char **argv)
{
	static struct homenode_run run;

	run.mode = homenode_options_parse(&run.opt, argc, argv);
	homenode_clock_open(&run.clock, run.opt.sysfs, false);
	run.time_factor = time_factor(&run);
	if (run.opt.list_requests) {
		homenode_server_list(&run);
		return 0;
	}
	if (run.opt.bind_cpu != HOMENODE_NONE)
		homenode_pin(run.opt.bind_cpu); /* threads inherit it */
	if (run.opt.perf) {
		struct homenode_perf trial;

		homenode_perf_parse(&run.plan, run.opt.perf);
		homenode_perf_open(&trial, &run.plan); /* fail once, and before the memory is touched */
		homenode_perf_finish(&trial);
	}
	homenode_run_all(&run);
	homenode_report_write(&run);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc < 2)
		homenode_fail(2, "read arguments: no mode given; see homenode-load --help");
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") || !strcmp(argv[1], "help"))
		return fputs(usage, stdout) < 0;
	if (!strcmp(argv[1], "control"))
		return homenode_control_main(argc, argv);
	if (!strcmp(argv[1], "status"))
		return homenode_status_main(argc, argv);
	if (!strcmp(argv[1], "touch"))
		return homenode_touch_main(argc, argv);
	if (!strcmp(argv[1], "pagecache"))
		return homenode_pagecache_main(argc, argv);
	if (!strcmp(argv[1], "patch"))
		return homenode_patch_main(argc, argv);
	if (!strcmp(argv[1], "peer"))
		return homenode_peer_main(argc, argv);
	if (!strcmp(argv[1], "drop"))
		return homenode_drop_main(argc, argv);
	if (!strcmp(argv[1], "pages"))
		return homenode_pages_main(argc, argv);
	return load_main(argc, argv);
}
