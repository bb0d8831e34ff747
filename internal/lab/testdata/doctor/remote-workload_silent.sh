# The same with memory on node 0.
# ci
# silent: remote-workload
# answer: no
group home 0-1
load home chase --threads 2 --ws 16MiB --bind-mem 0
