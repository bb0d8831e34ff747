# As many files, read from both nodes, and memory left on each.
# silent: page-cache-fills-node
bigfile
group backup
(echo 0 > $base/doctor/backup/cgroup.procs; dd if=/scratch/big of=/dev/null bs=1M count=100 2>/dev/null)
group service 0-1
load service chase --threads 2 --ws 16MiB
