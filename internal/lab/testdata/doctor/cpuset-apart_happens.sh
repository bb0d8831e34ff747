# A workload whose CPUs are on node 0 and whose memory may only be on node 1.
# ci
# want: cpuset-apart /doctor/split
# answer: yes
# after: no
group split 0-1 1
load split chase --threads 2 --ws 16MiB
