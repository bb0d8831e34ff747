#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# CPU time of stat, maps and topo against what must be read in any case, and
# against numastat: ratios, both sides in turns. A JSON line each in
# build/bench/stat.jsonl; exit code 1 if a limit is not met. What cannot be
# measured here is skipped with its reason.
set -eu
cd "$(dirname "$0")/.."
repeats=${REPEATS:-15}
machines=${HOMENODE_MACHINES:-../shared/machines}
out=build/bench/stat.jsonl
dir=$(mktemp -d)
cg=homenode-bench-$$
mkdir -p build/bench
: > "$out.new"
tool=build/bench/bench-stat
${CC:-cc} -O2 -Wall -o $tool scripts/bench-stat.c
hn=$PWD/build/homenode

holders=
made=
finish() {
	for pid in $holders; do kill "$pid" 2>/dev/null || :; done
	for d in $made; do
		n=0
		until rmdir "$d" 2>/dev/null || [ $n -ge 100 ]; do # its processes are still dying
			n=$((n + 1))
			sleep 0.1
		done
	done
	rm -rf "$dir"
}
trap finish EXIT
trap 'exit 1' INT TERM

skip() {
	echo "bench-stat: $1: skipped: $2" >&2
	printf '{"name":"%s","skipped":"%s"}\n' "$1" "$2" >> "$out.new"
}
measure() { "$tool" "$@" | tee -a "$out.new"; }

# start MODE N FILE: a holder in the background; waits until it has printed its ids.
start() {
	mkfifo "$dir/$1.in"
	"$tool" "$1" "$2" "$3" < "$dir/$1.in" &
	holders="$holders $!"
	sleep 100000 > "$dir/$1.in" &
	holders="$holders $!"
	n=0
	until [ -s "$3" ]; do
		n=$((n + 1))
		[ $n -lt 300 ] || { echo "bench-stat: $1 does not start" >&2; exit 1; }
		sleep 0.1
	done
}

# Every cgroup hierarchy gets one cgroup with all 500 in it.
gather() {
	for h in /sys/fs/cgroup /sys/fs/cgroup/cpuset /sys/fs/cgroup/cpu /sys/fs/cgroup/cpuacct /sys/fs/cgroup/cpu,cpuacct /sys/fs/cgroup/memory /sys/fs/cgroup/perf_event; do
		[ -f "$h/cgroup.procs" ] && [ ! -L "$h" ] && mkdir "$h/$cg" 2>/dev/null || continue
		made="$made $h/$cg"
		for f in cpuset.cpus cpuset.mems; do
			[ ! -f "$h/cgroup.clone_children" ] || [ ! -f "$h/$f" ] || cat "$h/$f" > "$h/$cg/$f"
		done
		while read -r pid; do echo "$pid" > "$h/$cg/cgroup.procs" || return 1; done < "$dir/pids"
	done
	[ -n "$made" ]
}

if [ ! -r /proc/self/numa_maps ]; then
	for name in stat-pids-vs-cat stat-pids-vs-numastat stat-pids-vs-numastat-ids stat-cgroup-vs-pids maps-vs-cat; do
		skip $name "this kernel has no /proc/PID/numa_maps (CONFIG_NUMA)"
	done
else
	start hold 500 "$dir/pids"
	pids=$(paste -sd, "$dir/pids")
	files=$(sed 's|.*|/proc/&/comm /proc/&/numa_maps|' "$dir/pids")
	# shellcheck disable=SC2086 # a word each
	measure compare stat-pids-vs-cat 1.3 "$repeats" "$hn" stat --pid "$pids" -- cat $files
	if command -v numastat > /dev/null; then
		# By name, as users ask for a service's processes; and by ids, so that
		# numastat does not search /proc.
		measure compare stat-pids-vs-numastat 1 "$repeats" "$hn" stat --pid "$pids" -- numastat -p bench-stat
		# shellcheck disable=SC2046
		measure compare stat-pids-vs-numastat-ids 1 "$((2 * repeats))" "$hn" stat --pid "$pids" -- numastat -p $(cat "$dir/pids")
	else
		skip stat-pids-vs-numastat "numastat is not installed (package numactl)"
		skip stat-pids-vs-numastat-ids "numastat is not installed (package numactl)"
	fi
	if gather 2> "$dir/why"; then
		measure compare stat-cgroup-vs-pids 0.3333 "$repeats" "$hn" stat --cgroup "/$cg" --interval 100ms -- "$hn" stat --pid "$pids"
	else
		skip stat-cgroup-vs-pids "no cgroup can be made here: root is needed"
	fi
	start many 50000 "$dir/many"
	many=$(cat "$dir/many")
	measure compare maps-vs-cat 1.3 "$repeats" "$hn" maps "$many" -- cat "/proc/$many/numa_maps"
fi

# The biggest recorded tree is the one with most files.
if ! "$hn" topo --help 2> /dev/null | grep -q -- --root; then
	skip topo "this build has no topo command"
elif [ ! -d "$machines" ]; then
	skip topo "no recorded machines in $machines"
else
	most=0
	for archive in "$machines"/*.tar.*; do
		n=$(tar tf "$archive" | wc -l)
		[ "$n" -le "$most" ] || { most=$n; biggest=$archive; }
	done
	mkdir "$dir/tree"
	tar xf "$biggest" -C "$dir/tree"
	tree=$(dirname "$(find "$dir/tree" -maxdepth 3 -type d -name sys | head -1)")
	measure below topo 50 "$repeats" "$hn" topo --root "$tree"
fi

mv "$out.new" "$out"
if grep -q '"met":false' "$out"; then
	echo "bench-stat: not met: $(grep '"met":false' "$out" | sed 's/.*"name":"\([^"]*\)".*/\1/' | paste -sd' ')" >&2
	exit 1
fi
