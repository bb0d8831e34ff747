# The guest was told the truth.
# silent: guest-topology
group any
load any chase --threads 4 --ws 16MiB
