#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The status database.
# SQLite after a month of a host (50 workloads, windows of 10 s, the usual retention): the file
# at most 1 GB, every ready-made question at most 1 s.
# ClickHouse (Debian's): at least 33,000 windows/s, at least half of what its driver alone
# inserts of the same windows in the same run, and a ranking of services over all of them at
# most 1 s. Through the wire and a hub, all on this machine: 33,000 windows/s, too.
#   HOMENODE_BENCH_DAYS=30 HOMENODE_BENCH_WINDOWS=5000000
set -eu
cd "$(dirname "$0")/.."
for each in "HOMENODE_BENCH_DAYS=${HOMENODE_BENCH_DAYS:-30}" "HOMENODE_BENCH_WINDOWS=${HOMENODE_BENCH_WINDOWS:-5000000}"; do
	case ${each#*=} in
	*[!0-9]* | '' | 0*) echo "bench-store: ${each%%=*} is '${each#*=}': want a number, 1 or more" >&2; exit 2 ;;
	esac
done
mkdir -p build/bench
log=build/bench/store.log
run() { "$@" >> $log 2>&1 || { tail -n 20 $log; exit 1; }; }
: > $log
echo "bench-store: filling ClickHouse, and a month in SQLite, takes some minutes"
HOMENODE_BENCH_WINDOWS="${HOMENODE_BENCH_WINDOWS:-5000000}" run scripts/test-clickhouse.sh go test -count=1 -timeout 60m -run TestBenchInsert -v ./internal/store/clickhouse
HOMENODE_BENCH_WINDOWS="${HOMENODE_BENCH_WINDOWS:-1200000}" run scripts/test-clickhouse.sh go test -count=1 -timeout 60m -run TestBenchWire -v ./cmd/homenode-hub
HOMENODE_BENCH_DAYS="${HOMENODE_BENCH_DAYS:-30}" run go test -count=1 -timeout 60m -run TestBenchMonth -v ./internal/store/sqlite
awk '
	function judge(what, value, sign, limit, unit,   met) {
		met = sign == "most" ? value <= limit : value >= limit
		printf "%-5s %s: %.3g %s, at %s %g\n", met ? "met" : "UNMET", what, value, unit, sign, limit
		bad = bad || !met
		judged++
	}
	/^figure sqlite_bytes/ { judge("a month of a host in SQLite", $3 / 1e9, "most", 1, "GB") }
	/^figure sqlite_slowest_s/ { judge("the slowest question (" $4 " " $5 " " $6 ")", $3, "most", 1, "s") }
	/^figure sqlite_windows_per_s/ { printf "      %d windows/s while it was filled\n", $3 }
	/^figure clickhouse_windows / { windows = $3 }
	/^figure clickhouse_windows_per_s/ { judge("ClickHouse, windows/s", $3, "least", 33000, "") }
	/^figure wire_windows_per_s/ { judge("windows/s of 100 hosts through TLS and a hub into ClickHouse", $3, "least", 33000, "") }
	/^figure clickhouse_alone_per_s/ { printf "      %d windows/s by its driver alone\n", $3 }
	/^figure clickhouse_of_driver/ { judge("ClickHouse against its driver alone (half of the writes: " $4 " to " $5 ")", $3, "least", 0.5, "times") }
	/^figure clickhouse_ranking_s/ { judge("ranking of services over " windows " windows (" $4 " to " $5 ")", $3, "most", 1, "s") }
	END {
		if (judged != 6) { printf "bench-store: %d of 6 figures were judged: see '"$log"'\n", judged; bad = 1 }
		exit bad
	}' $log
