# SPDX-License-Identifier: Apache-2.0
# Functions for the doctor's cases. Runs in the lab's guest (busybox sh).
base=/sys/fs/cgroup
mkdir -p $base/doctor
echo "+cpuset +cpu +memory" > $base/doctor/cgroup.subtree_control

# group NAME [CPUS [MEMS]]: a workload's cgroup
group() {
	mkdir -p "$base/doctor/$1"
	[ -z "${2:-}" ] || echo "$2" > "$base/doctor/$1/cpuset.cpus"
	[ -z "${3:-}" ] || echo "$3" > "$base/doctor/$1/cpuset.mems"
}

# load NAME ARGS…: homenode-load in that cgroup, until it is killed; returns when it is at
# work. UNDER is a program that it is started by.
load() {
	name=$1
	shift
	echo "${UNDER:-} homenode-load $*" > "/tmp/doctor-$name.command"
	# shellcheck disable=SC2086 # words
	begin "$name" ${UNDER:-} homenode-load "$@"
}

# restart NAME PID COMMAND…: the load of that cgroup once more, by that command
restart() {
	name=$1 pid=$2
	shift 2
	kill -9 "$pid" 2>/dev/null
	i=0
	while [ -e "/proc/$pid/maps" ] && [ $i -lt 100 ]; do
		sleep 0.1
		i=$((i + 1))
	done
	# shellcheck disable=SC2046 # words
	begin "$name" "$@" $(cat "/tmp/doctor-$name.command")
}

# begin NAME COMMAND…: a command that ends with homenode-load ARGS…
begin() {
	name=$1
	shift
	rm -f "/tmp/doctor-$name.ready"
	(
		echo 0 > "$base/doctor/$name/cgroup.procs"
		exec "$@" --ready "/tmp/doctor-$name.ready" --out "/tmp/doctor-$name.json"
	) </dev/null >"/tmp/doctor-$name.log" 2>&1 &
	i=0
	while [ ! -e "/tmp/doctor-$name.ready" ]; do
		sleep 0.1
		i=$((i + 1))
		[ $i -lt 600 ] || { echo "load $name is not ready: $(cat /tmp/doctor-$name.log; cat $base/doctor/$name/memory.events; grep MemFree /sys/devices/system/node/node*/meminfo)" >&2; exit 1; }
	done
}

# forever NAME COMMAND…: repeats a command in that cgroup until it is killed
forever() {
	name=$1
	shift
	(
		echo 0 > "$base/doctor/$name/cgroup.procs"
		exec sh -c "while :; do $*; done"
	) </dev/null >"/tmp/doctor-$name.log" 2>&1 &
	echo $! >> /tmp/doctor-pids
}

# bigfile: a file of 1400 MiB without a block on disk: reading it only fills the page cache
bigfile() {
	mkdir -p /scratch
	grep -q ' /scratch ' /proc/mounts || { mke2fs /dev/vdb >/dev/null 2>&1 && mount -t ext4 /dev/vdb /scratch; }
	[ -e /scratch/big ] || truncate -s 1400M /scratch/big
}

# cached MIB: waits until so much of the memory is page cache
cached() {
	i=0
	until [ "$(awk '/^Cached:/ { print int($2 / 1024) }' /proc/meminfo)" -ge "$1" ]; do
		sleep 1
		i=$((i + 1))
		[ $i -lt 120 ] || { echo "the page cache is not filled: $(grep Cached /proc/meminfo)" >&2; exit 1; }
	done
}

# numactl's, which the guest does not have: the options that the doctor prints
[ -e /bin/numactl ] || cat > /bin/numactl << 'EOF'
#!/bin/sh
while [ "$1" != -- ]; do
	case $1 in
	--interleave=*) where="--policy interleave --nodes ${1#*=}" ;;
	--membind=*) where="--policy bind --nodes ${1#*=}" ;;
	--cpunodebind=*) cpus="--cpus $(cat "/sys/devices/system/node/node${1#*=}/cpulist")" ;;
	*) echo "numactl $1: not in the lab" >&2; exit 2 ;;
	esac
	shift
done
exec homenode run $where $cpus "$@"
EOF
chmod +x /bin/numactl
migratepages() { homenode-load peer migrate-pages "$1" "$2" "$3" > /dev/null; }

model() { homenode-load control "$1"; }

# tidy: undoes everything that a case did
tidy() {
	for p in $(cat /tmp/doctor-pids 2>/dev/null); do kill -9 "$p"; done 2>/dev/null
	killall -9 homenode-load dd 2>/dev/null
	for i in 1 2 3 4 5 6 7 8 9 10; do
		pidof homenode-load dd >/dev/null || break
		sleep 0.2
	done
	model off
	rm -f /tmp/doctor-* /dev/shm/doctor-*
	for g in "$base"/doctor/*/; do rmdir "$g"; done 2>/dev/null
	echo 0 > /proc/sys/kernel/numa_balancing
	echo 0 > /proc/sys/vm/zone_reclaim_mode
	for f in /sys/devices/system/node/node*/hugepages/hugepages-2048kB/nr_hugepages; do echo 0 > "$f"; done
	umount /sys/devices/system/node/node1/cpumap /sys/devices/system/node/node1/cpulist 2>/dev/null
	umount /scratch 2>/dev/null
	swapoff /dev/vdb 2>/dev/null
	sync
	echo 3 > /proc/sys/vm/drop_caches
	true
}
