# Two busy threads fit.
# silent: wider-than-node
group narrow
load narrow chase --threads 2 --ws 8MiB
