# NUMA balancing is on, and the binding is on one node.
# silent: balancing-fights-binding
# for: 5s
echo 1 > /proc/sys/kernel/numa_balancing
group agree 0-1 0
load agree chase --threads 2 --ws 8MiB --thp off
