# Four services, each bound to a node with its memory, one with page cache: nothing
# is wrong with this machine.
# shape: four
# ci
# silent: everything
# answer: no
bigfile
for n in 0 1 2 3; do group s$n $((2 * n))-$((2 * n + 1)) $n; done
(echo 0 > $base/doctor/s1/cgroup.procs; dd if=/scratch/big of=/dev/null bs=1M count=100 2>/dev/null)
for n in 0 1 2 3; do load s$n chase --threads 1 --ws 8MiB; done
