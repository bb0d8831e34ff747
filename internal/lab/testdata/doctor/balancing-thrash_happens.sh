# NUMA balancing is on, and something moves a process from node to node as fast
# as its pages follow.
# skip: by the model's clock a CPU of 50 MHz takes too few hinting faults and moves too few pages for what they cost on a real CPU
# want: balancing-thrash until the workloads are placed
# after: any
# for: 6s
echo 1 > /proc/sys/kernel/numa_balancing
echo 100 > /sys/kernel/debug/sched/numa_balancing/scan_period_min_ms
group moved
load moved chase --threads 1 --ws 96MiB --thp off
pid=$(pidof homenode-load)
(while :; do taskset -ap 1 $pid; sleep 2; taskset -ap 4 $pid; sleep 2; done) </dev/null >/dev/null 2>&1 &
echo $! >> /tmp/doctor-pids
model on
sleep 4
