# Four busy threads; a node has two CPUs.
# want: wider-than-node of its reads are remote, and
# after: any
# stays
group wide
load wide chase --threads 4 --ws 8MiB
