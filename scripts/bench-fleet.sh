#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The fleet's page and questions over a real store: a window of each of 20 workloads on
# 100,000 hosts, in each of some hours, rolled up, in ClickHouse and in SQLite. Times are told and
# not judged: they are of this machine and of what else it does.
#   HOMENODE_BENCH_HOSTS=100000 HOMENODE_BENCH_HOURS=1 ONLY=clickhouse
set -eu
cd "$(dirname "$0")/.."
mkdir -p build/bench
echo "bench-fleet: filling both stores takes some minutes"
HOMENODE_BENCH_HOSTS="${HOMENODE_BENCH_HOSTS:-100000}" scripts/test-clickhouse.sh \
	go test -count=1 -timeout 120m -run "TestBenchFleet/${ONLY:-}" -v ./internal/hub/page > build/bench/fleet.log 2>&1 ||
	{ tail -n 20 build/bench/fleet.log; exit 1; }
awk '
	/^figure fleet_fill_s/ { printf "      %s: filled with %d windows in %.0f s\n", $3, $5, $4 }
	/^figure fleet_roll_s/ { printf "      %s: rolled up in %.0f s\n", $3, $4 }
	/^figure fleet_(page|query)_s/ { kind = $2; sub(/fleet_/, "", kind); sub(/_s/, "", kind); name = $5 " " $6; printf "      %s: %-5s %-16s %8.3f s\n", $3, kind, name, $4 }' build/bench/fleet.log
