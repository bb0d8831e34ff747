# What looks like a virtual machine (by the names of its threads) runs on both
# nodes; its guest sees one.
# want: vm-flat-topology until the VM has virtual nodes
# after: any
# stays
group vm
load vm chase --threads 4 --ws 16MiB --vm
