#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The status database in SQLite after a month of a host (50 workloads, windows of 10 s, the usual
# retention): the file at most 1 GB, every ready-made question at most 1 s.
#   HOMENODE_BENCH_DAYS=30
set -eu
cd "$(dirname "$0")/.."
mkdir -p build/bench
echo "bench-store: filling a month takes some minutes"
HOMENODE_BENCH_DAYS="${HOMENODE_BENCH_DAYS:-30}" go test -count=1 -timeout 60m -run TestBenchMonth -v ./internal/store/sqlite > build/bench/store.log 2>&1 ||
	{ tail -n 20 build/bench/store.log; exit 1; }
awk '
	function judge(what, value, limit, unit) {
		printf "%-5s %s: %.3g %s, at most %g\n", value <= limit ? "met" : "UNMET", what, value, unit, limit
		bad = bad || value > limit
	}
	/^figure sqlite_bytes/ { judge("a month of a host in SQLite", $3 / 1e9, 1, "GB") }
	/^figure sqlite_slowest_s/ { judge("the slowest question (" $4 " " $5 " " $6 ")", $3, 1, "s") }
	/^figure sqlite_windows_per_s/ { printf "      %d windows/s while it was filled\n", $3 }
	END { exit bad }' build/bench/store.log
