# Six streams from three nodes' CPUs, all of them out of node 0's memory, where their main
# thread put it.
# shape: four
# want: bandwidth-saturated
# answer: yes
# after: any
group streams
export UNDER="taskset 1"
load streams stream --threads 6 --ws 16MiB --touch main --cpus 0-5
