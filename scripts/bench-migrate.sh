#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Moving memory: homenode against migrate_pages(2) (what migratepages does), a write to
# cpuset.mems and cgroup v1's memory_migrate, in the lab; and against migratepages
# itself where this machine has two nodes with memory. Results in build/bench; exit
# code 1 if a target is not met. The host should have nothing else to do.
#   REPEATS=5  ONLY=running,neutral,many,one,small,kinds
set -u
cd "$(dirname "$0")/.."
out=$PWD/build/bench
mkdir -p "$out"
bad=0
export CI=true

echo "bench-migrate: in the lab (model time; about a quarter of an hour)"
HOMENODE_BENCH="$out" HOMENODE_BENCH_REPEATS="${REPEATS:-5}" HOMENODE_BENCH_ONLY="${ONLY:-}" \
	go test -count=1 -timeout 60m -run 'TestBenchMigrate$' -v ./internal/lab > "$out/migrate.log" 2>&1 || bad=1
grep -vE '^(=== |--- |ok|FAIL|PASS|    migrate_bench)' "$out/migrate.log"
[ -s "$out/migrate.json" ] || tail -n 20 "$out/migrate.log"

# A sleeping process of 1 GiB, by the wall clock. Root: migrate_pages of another's.
load=build/lab/homenode-load
size=1g
from= to=
for n in $(sed 's/,/ /g; s/\([0-9]*\)-\([0-9]*\)/\1 \2/g' /sys/devices/system/node/has_memory 2>/dev/null); do
	if [ -z "$to" ]; then to=$n; elif [ "$n" != "$to" ] && [ -z "$from" ]; then from=$n; fi
done
skip() { echo "bench-migrate: on this machine: skipped: $1"; exit $bad; }
[ -n "$from" ] || skip "it has one node with memory"
[ "$(id -u)" -eq 0 ] || skip "root is needed"
command -v migratepages > /dev/null || skip "migratepages is not installed (package numactl)"
dir=$(mktemp -d)
holder=
trap 'test -n "$holder" && kill "$holder" 2>/dev/null; rm -rf "$dir"' EXIT
trap 'exit 1' INT TERM

timed() { # NAME COMMAND…
	name=$1
	shift
	rm -f "$dir/ready"
	"$load" hold --ws $size --thp off --bind-mem "$from" --ready "$dir/ready" --out "$dir/report" &
	holder=$!
	until [ -e "$dir/ready" ]; do
		kill -0 $holder 2>/dev/null || skip "the process that is to be moved does not start"
		sleep 0.1
	done
	begin=$(date +%s%N)
	"$@" $holder > "$dir/$name.out" 2>&1 || { echo "$name: exit $?: $(tail -n 1 "$dir/$name.out")"; bad=1; }
	end=$(date +%s%N)
	echo "$name: $(((end - begin) / 1000000)) ms, $("$load" pages --pid $holder)"
	kill $holder
	wait $holder
	holder=
}
by_migratepages() { migratepages "$1" "$from" "$to"; }
by_homenode() { build/homenode migrate --pid "$1" --from "$from" --to "$to" --rate max --workers 4 -o json; }
echo "bench-migrate: on this machine, $size of node $from to node $to, by the wall clock"
for i in 1 2 3; do
	timed migratepages by_migratepages
	timed homenode by_homenode
done
exit $bad
