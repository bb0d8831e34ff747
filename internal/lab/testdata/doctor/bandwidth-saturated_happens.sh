# Six streams from three nodes' CPUs, all of them out of node 0's memory.
# shape: four
# want: bandwidth-saturated
group streams
load streams stream --threads 6 --ws 16MiB --bind-mem 0 --cpus 0-5
