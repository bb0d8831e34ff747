# It runs on one node.
# silent: vm-flat-topology
group vm 0-1 0
load vm chase --threads 2 --ws 16MiB --vm
