# Four streams from both nodes' CPUs, all of them out of node 0's memory.
# model: warm
# want: bandwidth-saturated
group streams
load streams stream --threads 4 --ws 32MiB --bind-mem 0
