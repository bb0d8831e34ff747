# Bound to node 0, with almost all memory that is free there: taken in small steps,
# because a step too far ends with the OOM killer.
# want: memory-too-tight /doctor/tight
# answer: yes
# after: no
left() { sed -n 's/.*MemFree: *\([0-9]*\) kB/\1/p' /sys/devices/system/node/node0/meminfo; }
group tight 0-1 0
load tight spin --threads 1 --extra $(($(left) / 1024 - 90))MiB
n=0
while [ "$(left)" -gt 62000 ] && [ $n -lt 40 ]; do
	(echo 0 > $base/doctor/tight/cgroup.procs; exec homenode-load hold --ws 4MiB) </dev/null >/dev/null 2>&1 &
	sleep 0.3
	n=$((n + 1))
done
