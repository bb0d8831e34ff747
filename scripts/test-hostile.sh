#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The agent beside 10,000 processes of a hostile user, each with a numa_maps of 200 MB:
# what it holds at its peak (VmHWM), what a round costs, and what it says. Exit code 1 if it
# takes more than 64 MiB, ends early, or says nothing of what it could not read.
#
#   CGROUPS=50 PROCESSES=200 MAPPINGS=60000 FOLDERS=15 ROUNDS=6 scripts/test-hostile.sh [with|without]
#
# The processes of a cgroup share one memory map, so that all of them fit: a mapping costs
# the kernel some 250 bytes, for each cgroup. Once with the memory controller, where the
# agent samples numa_maps for memory policies only, and once without, where it has to read
# those of all processes. FOLDERS=800 makes lines of 200 KB, which are refused at once.
set -eu
cd "$(dirname "$0")/.."
groups=${CGROUPS:-50} processes=${PROCESSES:-200} mappings=${MAPPINGS:-60000} folders=${FOLDERS:-15} rounds=${ROUNDS:-6}
most=65536 # KiB
skip() { echo "test-hostile: skipped: $*"; exit 0; }
[ "$(id -u)" = 0 ] || skip "root is needed to make cgroups"
top=/sys/fs/cgroup
work=$(mktemp -d /dev/shm/homenode-hostile-XXXXXX)
user=
dirs=

# hierarchies prints where the cgroups are to be made. On v2 memory cannot be left out.
hierarchies() { # controller…
	if [ -e $top/cgroup.controllers ]; then
		case $* in *memory*) echo $top ;; esac
		return
	fi
	for c in "$@"; do
		if [ -d "$top/$c" ] && [ ! -L "$top/$c" ]; then echo "$top/$c"; fi
	done
}

clean() {
	[ -z "$user" ] || { kill -9 "$user" 2>/dev/null || true; wait "$user" 2>/dev/null || true; }
	exec 3>&- || true
	for d in $dirs; do
		tries=0
		until rmdir "$d" 2>/dev/null || [ ! -d "$d" ] || [ $tries -ge 300 ]; do tries=$((tries + 1)); sleep 0.1; done
	done
	user=
	dirs=
}
trap 'clean; rm -rf "$work"' EXIT
trap 'exit 1' INT TERM

make() { # dir…: the cgroups, deepest first in dirs
	for h in "$@"; do
		mkdir "$h/hostile"
		dirs="$h/hostile $dirs"
		if [ -e "$h/cgroup.controllers" ]; then
			echo "+cpuset +memory" > "$h/cgroup.subtree_control" && echo "+cpuset +memory" > "$h/hostile/cgroup.subtree_control"
		fi
		g=0
		while [ $g -lt "$groups" ]; do
			d=$h/hostile/g$(printf %03d $g)
			mkdir "$d"
			dirs="$d $dirs"
			g=$((g + 1))
		done
	done
}

fill() { # cpuset of v1: nothing is inherited
	[ ! -e $top/cpuset/cpuset.cpus ] || [ -e $top/cgroup.controllers ] || for d in $top/cpuset/hostile $top/cpuset/hostile/g*; do
		for f in cpuset.cpus cpuset.mems; do cat "$top/cpuset/$f" > "$d/$f"; done
	done
}

agent() { # runs it and prints its peak, in KiB, and CPU time, in ticks
	cat > "$work/agent.yaml" <<-EOF
	period: 2s
	calm_period: 2s
	state_dir: $work/state
	history: none
	decisions: none
	api: {socket: none}
	cgroups: ["/hostile/*"]
	services: [{name: all, match: "/hostile/*", approved: true, target_local_ratio: 0.99}]
	EOF
	build/homenode agent --config "$work/agent.yaml" --rounds "$rounds" < /dev/null > /dev/null 2> "$work/log" &
	agent=$!
	peak=0
	ticks=0
	: > "$work/said"
	while now=$(sed -n 's/^VmHWM:[^0-9]*\([0-9]*\).*/\1/p' /proc/$agent/status 2> /dev/null) && [ -n "$now" ]; do
		peak=$now
		# Its name has no blank: fields 14 and 15 are the CPU time in user and in kernel mode.
		now=$(awk '{ print $14 + $15 }' /proc/$agent/stat 2> /dev/null) && ticks=${now:-$ticks}
		# A window has its own problems only.
		build/homenode status --state "$work/state" 2> /dev/null | grep '^could not read' >> "$work/said" || true
		sleep 0.2
	done
	code=0
	wait $agent || code=$?
	[ $code = 0 ] || { echo "test-hostile: the agent's exit code is $code:"; tail -n 20 "$work/log"; return 1; }
	echo "$peak $ticks"
}

try() { # name, folders of the cgroups
	name=$1
	shift
	[ $# -gt 0 ] || { echo "test-hostile: $name: not on this host"; return 0; }
	make "$@"
	fill
	mkfifo "$work/stop" "$work/ready" 2> /dev/null || true
	args=
	for h in "$@"; do args="$args $h/hostile/g"; done
	# shellcheck disable=SC2086
	(cd "$work" && exec "$OLDPWD/build/test-hostile" 65534 "$groups" "$processes" "$mappings" "$folders" $args) < "$work/stop" > "$work/ready" &
	user=$!
	exec 3> "$work/stop"
	read -r _ < "$work/ready" || { echo "test-hostile: the user's processes did not start"; return 1; }
	line=$(grep -m 1 'dddd.*mapped=' "/proc/$(head -n 1 "$1/hostile/g000/cgroup.procs")/numa_maps" | wc -c)
	result=$(agent) || { echo "$result"; return 1; }
	# shellcheck disable=SC2086
	set -- $result
	echo "test-hostile: $name: $((groups * processes)) processes with numa_maps of $((line * mappings >> 20)) MiB each: VmHWM $(($1 / 1024)) MiB, $(($2 * 1000 / $(getconf CLK_TCK) / rounds)) ms of CPU time a round; it says:"
	[ -s "$work/said" ] || { echo "test-hostile: it says nothing of what it could not read"; return 1; }
	sort -u "$work/said" | head -n 3
	[ "$1" -le $most ] || { echo "test-hostile: more than $((most / 1024)) MiB"; return 1; }
	clean
}

mkdir -p build
${CC:-cc} -O2 -Wall -o build/test-hostile scripts/test-hostile.c
[ -x build/homenode ] || make build
# shellcheck disable=SC2046
[ "${1:-with}" != with ] || try "with the memory controller" $(hierarchies cpuset cpu,cpuacct cpuacct memory)
# shellcheck disable=SC2046
[ "${1:-without}" != without ] || try "without it" $(hierarchies cpuset cpu,cpuacct cpuacct)
