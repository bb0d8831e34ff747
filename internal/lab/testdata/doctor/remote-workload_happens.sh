# A thread on node 0 reads memory that a policy puts on node 1; nothing binds the
# workload.
# ci
# want: remote-workload /doctor/away
# answer: yes
# after: no
group away
load away chase --threads 1 --ws 16MiB --bind-cpu 0 --bind-mem 1
