# The guest sees one node; its memory is on two.
# flat
# want: guest-topology
group any
load any chase --threads 4 --ws 16MiB
