# Six streams from three nodes' CPUs, all of them out of node 0's memory.
# shape: four
# want: bandwidth-saturated which overrules numactl's
# after: yes
# stays
group streams
load streams stream --threads 6 --ws 16MiB --bind-mem 0 --cpus 0-5
