#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Moving memory: homenode against migrate_pages(2) (as used by migratepages), a write to
# cpuset.mems and cgroup v1's memory_migrate, in the lab; and against migratepages
# itself where this machine has two nodes with memory. Results in build/bench; exit
# code 1 if a target is not met. A busy host makes the lab's part longer, not different. For
# the other part it should have nothing else to do.
#   REPEATS=5  ONLY=neutral,running,rates,many,one,small,thp,kinds (comma between)
set -u
cd "$(dirname "$0")/.." || exit
out=$PWD/build/bench
mkdir -p "$out"
rm -f "$out/migrate.json" # of an earlier run
bad=0
export CI=true

echo "bench-migrate: in the lab"
HOMENODE_BENCH="$out" HOMENODE_BENCH_REPEATS="${REPEATS:-5}" HOMENODE_BENCH_ONLY="${ONLY:-}" \
	go test -count=1 -timeout 60m -run 'TestBenchMigrate$' -v ./internal/lab > "$out/migrate.log" 2>&1 || bad=1
# All output but go test's own lines: failures too.
grep -vE '^ *(=== |--- |ok|FAIL|PASS)' "$out/migrate.log"
[ -s "$out/migrate.json" ] || { echo "bench-migrate: there is no result: see $out/migrate.log"; bad=1; }

# A sleeping process of 1 GiB, by the wall clock. Root: migrate_pages of another's.
load=build/lab/homenode-load
size=1g
limit=300 # s, of one move; larger: a hang costs more
most_left=1048576 # bytes of 1 GiB, 0.1 %; larger: a move counts that leaves more
from='' to=''
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

# left FILE: bytes of private memory in a document of homenode-load pages that are on $from
left() { sed -n 's/.*"anon":\[\([0-9,]*\)\].*/\1/p' "$1" | cut -d, -f$((from + 1)); }

held() { # a process with its memory on $from; its id in $holder
	rm -f "$dir/ready"
	"$load" hold --ws $size --thp off --bind-mem "$from" --seconds $((2 * limit)) --ready "$dir/ready" --out "$dir/report" &
	holder=$!
	i=0
	until [ -e "$dir/ready" ]; do
		i=$((i + 1))
		if [ $i -gt 600 ] || ! kill -0 $holder 2>/dev/null; then
			echo "bench-migrate: the process to be moved does not start: is $size free on node $from?"
			exit 1
		fi
		sleep 0.1
	done
}

timed() { # NAME COMMAND: of a shell, in which $PID is the process's id
	name=$1 command=$2
	held
	begin=$(date +%s%N)
	PID=$holder timeout $limit sh -c "$command" > "$dir/$name.out" 2>&1
	code=$?
	end=$(date +%s%N)
	"$load" pages --pid "$holder" > "$dir/pages"
	stay=$(left "$dir/pages")
	echo "$name: $(((end - begin) / 1000000)) ms, exit $code, ${stay:-unknown} bytes of private memory stay on node $from"
	if [ $code -ne 0 ] && [ $code -ne 3 ]; then # 3: homenode left something; how much decides
		echo "$name: FAILED: $(tail -n 1 "$dir/$name.out")"
		bad=1
	elif [ -z "$stay" ] || [ "$stay" -gt $most_left ]; then
		echo "$name: INCOMPLETE: more than $most_left bytes stay, so that its time means nothing"
		bad=1
	fi
	kill "$holder"
	wait "$holder" 2>/dev/null
	holder=
}
echo "bench-migrate: on this machine, $size of node $from to node $to, by the wall clock"
for i in 1 2 3; do
	timed migratepages 'migratepages $PID '"$from $to"
	timed homenode 'build/homenode migrate --pid $PID --from '"$from --to $to --rate max --workers 4 -o json"
done
exit $bad
