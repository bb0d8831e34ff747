# NUMA balancing is on, and its work is done.
# silent: balancing-thrash
echo 1 > /proc/sys/kernel/numa_balancing
group still 0-1
load still chase --threads 2 --ws 8MiB --thp off
sleep 8
