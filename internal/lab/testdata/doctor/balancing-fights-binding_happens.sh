# NUMA balancing wants the pages on the CPUs' node; the cpuset forbids it.
# want: balancing-fights-binding
# after: no
# for: 5s
echo 1 > /proc/sys/kernel/numa_balancing
echo 100 > /sys/kernel/debug/sched/numa_balancing/scan_period_min_ms
group fight 0-1 1
load fight chase --threads 2 --ws 16MiB --thp off
