# The guest sees one node; its memory is on two.
# flat
# want: guest-topology
# after: cannot tell
# stays
group any
load any chase --threads 4 --ws 16MiB
