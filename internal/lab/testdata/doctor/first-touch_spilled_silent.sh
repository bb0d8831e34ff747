# One thread, pinned to CPU 0, set up its memory while page cache filled node 0: it came
# from node 1. That is no first touch: nearly all CPU time is on one node.
# silent: first-touch
# want: remote-workload bound, but not to its memory
# after: no
bigfile
group backup 0-1
left=$(sed -n 's/.*MemFree: *\([0-9]*\) kB/\1/p' /sys/devices/system/node/node0/meminfo)
(echo 0 > $base/doctor/backup/cgroup.procs; exec taskset 1 dd if=/scratch/big of=/dev/null bs=1M count=$((left / 1024)) 2>/dev/null)
group pinned
load pinned chase --threads 1 --ws 24MiB --bind-cpu 0
