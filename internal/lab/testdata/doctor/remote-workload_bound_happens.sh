# Bound to node 0; its memory has a policy of its own that puts it on node 1.
# want: remote-workload bound, but not to its memory
# answer: yes
# after: no
group left 0-1
load left chase --threads 2 --ws 16MiB --bind-mem 1
