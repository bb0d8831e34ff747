# Four busy threads; a node has two CPUs.
# want: wider-than-node /doctor/wide
group wide
load wide chase --threads 4 --ws 8MiB
