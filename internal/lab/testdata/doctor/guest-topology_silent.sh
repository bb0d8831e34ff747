# The guest sees the real nodes.
# silent: guest-topology
group any
load any chase --threads 4 --ws 16MiB
