#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The cost of counting events per cgroup at context switches: perf's groups, BPF, and
# BPF in one of 16 ticks, each against not counting, in turns; on this host with the
# kernel's clock for events (a VM has no PMU), and in the lab with the model's, in
# instructions. Results in build/bench/count.json and count-lab.json; exit code 1 if
# homenode's default slows runs of 50 µs by more than 0.5 %.
set -u
cd "$(dirname "$0")/.." || exit
out=$PWD/build/bench
mkdir -p "$out"
bad=0
echo "bench-count: this host"
HOMENODE_BENCH="$out/count.json" STEPS=0 WAYS=perf,bpf,bpf/16 REPEATS="${REPEATS:-25}" \
	go test -count=1 -timeout 20m -run TestBenchCount -v ./internal/kernel/bpfcount > "$out/count.log" 2>&1 || bad=1
grep -E ' a switch|skip|SKIP|want' "$out/count.log" || tail -n 20 "$out/count.log"
[ -d build/lab ] || { echo "bench-count: the lab: skipped: it is not built ('make lab')"; exit $bad; }
echo "bench-count: the lab"
HOMENODE_BENCH="$out/count-lab.json" go test -count=1 -timeout 20m -run TestBenchLabCount -v ./internal/lab > "$out/count-lab.log" 2>&1 || bad=1
grep -E 'How:|skip|SKIP' "$out/count-lab.log" || tail -n 20 "$out/count-lab.log"
exit $bad
