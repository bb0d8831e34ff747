# What looks like a virtual machine (by the names of its threads) runs on both
# nodes; its guest sees one.
# want: vm-flat-topology homenode-load
group vm
load vm chase --threads 4 --ws 16MiB --vm
