# Threads on node 0 read memory that was bound to node 1.
# ci
# want: remote-workload /doctor/away
# answer: yes
group away 0-1
load away chase --threads 2 --ws 16MiB --bind-mem 1
