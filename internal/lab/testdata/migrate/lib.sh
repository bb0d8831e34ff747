# SPDX-License-Identifier: Apache-2.0
# Functions for the tests and the bench of moving memory. Runs in the lab's guest
# (busybox sh), under both versions of cgroups.
if [ -d /sys/fs/cgroup/cpuset ]; then version=v1 base=/sys/fs/cgroup/cpuset; else version=v2 base=/sys/fs/cgroup; fi
export base
hugepages=/sys/devices/system/node/node%d/hugepages/hugepages-2048kB/nr_hugepages

# hierarchies: the folders in which a cgroup is made
hierarchies() {
	if [ $version = v2 ]; then echo $base; else ls -d /sys/fs/cgroup/cpuset /sys/fs/cgroup/memory /sys/fs/cgroup/freezer /sys/fs/cgroup/perf_event; fi
}

# group NAME [MEMS]: a workload's cgroup, on all CPUs and on the nodes MEMS ("": all)
group() {
	for h in $(hierarchies); do mkdir -p "$h/$1"; done
	if [ $version = v1 ]; then
		cat $base/cpuset.cpus > "$base/$1/cpuset.cpus"
		echo "${2:-$(cat $base/cpuset.mems)}" > "$base/$1/cpuset.mems"
	elif [ -n "${2:-}" ]; then
		echo "$2" > "$base/$1/cpuset.mems"
	fi
}

# enter NAME: moves this shell, and what it starts, into that cgroup
enter() {
	for h in $(hierarchies); do echo $$ > "$h/$1/cgroup.procs"; done
}

# start NAME GROUP ARGS…: homenode-load in that cgroup, until it is ended; its process id is in /tmp/mig-NAME.pid
start() {
	name=$1 into=$2
	shift 2
	rm -f "/tmp/mig-$name.ready" "/tmp/mig-$name.json"
	# a shell of its own: $$ in a subshell is its parent's
	sh -c '. /tmp/mig-lib.sh; into=$1 name=$2; shift 2; enter "$into"
		exec homenode-load "$@" --ready "/tmp/mig-$name.ready" --out "/tmp/mig-$name.json"' start "$into" "$name" "$@" \
		</dev/null >"/tmp/mig-$name.log" 2>&1 &
	echo $! > "/tmp/mig-$name.pid"
	i=0
	while [ ! -e "/tmp/mig-$name.ready" ]; do
		sleep 0.05
		i=$((i + 1))
		if [ $i -gt 1200 ] || ! kill -0 "$(cat "/tmp/mig-$name.pid")" 2>/dev/null; then
			echo "start $name: it is not ready: $(cat "/tmp/mig-$name.log"; grep MemFree /sys/devices/system/node/node*/meminfo)" >&2
			return 1
		fi
	done
}

# segment NAME GROUP BYTES CPU: a process with a System V segment
segment() {
	rm -f "/tmp/mig-$1.log"
	sh -c '. /tmp/mig-lib.sh; enter "$1"; exec taskset "$3" /tmp/shmtouch "$2"' segment "$2" "$3" $((1 << $4)) </dev/null >"/tmp/mig-$1.log" 2>&1 &
	echo $! > "/tmp/mig-$1.pid"
	i=0
	until grep -q SYSV "/tmp/mig-$1.log" || [ $i -gt 200 ]; do
		sleep 0.05
		i=$((i + 1))
	done
}

# pid NAME…: process ids, separated by commas
pid() {
	list=
	for n; do list=$list${list:+,}$(cat "/tmp/mig-$n.pid"); done
	echo "$list"
}

# pids GROUP: ids of all its processes, separated by commas
pids() { paste -sd, "$base/$1/cgroup.procs"; }

# finish NAME: ends the load, and prints its report
finish() {
	kill "$(pid "$1")"
	i=0
	while [ ! -e "/tmp/mig-$1.json" ] && [ $i -lt 200 ]; do
		sleep 0.05
		i=$((i + 1))
	done
	cat "/tmp/mig-$1.json"
}

# scratch: a file system on the disk, empty; the guest's cannot be seen by homenode's own files
scratch() {
	mkdir -p /scratch
	grep -q ' /scratch ' /proc/mounts && return
	mke2fs /dev/vdb >/dev/null 2>&1 && mount -t ext4 /dev/vdb /scratch
}

# cached FILE BYTES CPU: a new file whose pages are all in the page cache of that CPU's node
cached() {
	rm -f "$1"
	homenode-load pagecache --write --bytes "$2" --bind-cpu "$3" --file "$1" >/dev/null
}

# moving GROUP [PAGES]: waits until that many pages of its private memory are on node 1
# (default 1024: 4 MiB); fails after a minute
moving() {
	n=0
	until [ "$(for p in $(cat "$base/$1/cgroup.procs"); do cat "/proc/$p/numa_maps"; done 2>/dev/null |
		awk '/ anon=/ { for (i = 1; i <= NF; i++) if ($i ~ /^N1=/) sum += substr($i, 4) } END { print sum + 0 }')" -ge "${2:-1024}" ]; do
		n=$((n + 1))
		[ $n -lt 600 ] || return 1
		sleep 0.1
	done
}

pool() { # NODE PAGES: huge pages of 2 MiB
	echo "$2" > "$(printf $hugepages "$1")"
}

# The guest's server is also homenode. The mover has its own name, so that killall ends only it.
[ -e /bin/homenode-mover ] || ln -s /bin/homenode /bin/homenode-mover

# tidy: undoes everything
tidy() {
	homenode-load control off >/dev/null
	[ -e /tmp/mig-meanwhile.pid ] && kill "$(cat /tmp/mig-meanwhile.pid)" 2>/dev/null
	killall -9 homenode-load homenode-mover shmtouch churn 2>/dev/null
	i=0
	while pidof homenode-load homenode-mover shmtouch churn >/dev/null && [ $i -lt 1200 ]; do
		sleep 0.05
		i=$((i + 1))
	done
	rm -f /tmp/mig-*.pid /tmp/mig-*.ready /tmp/mig-*.json /tmp/mig-*.log /dev/shm/mig-* /dev/hugepages/mig-* /scratch/mig-*
	for n in 0 1; do pool $n 0; done
	for h in $(hierarchies); do
		for d in "$h"/mig*/; do [ -d "$d" ] && rmdir "$d"; done 2>/dev/null
	done
	true
}
