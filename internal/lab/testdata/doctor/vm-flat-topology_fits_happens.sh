# A virtual machine of two CPUs, one on each node; it fits into one node.
# want: vm-flat-topology homenode-load
# after: no
group vm
load vm chase --threads 2 --ws 16MiB --vm --touch worker --cpus 0,2
