# Two programs of two streams each, all of them out of node 0's memory; the second one may
# move to node 1.
# shape: four
# want: bandwidth-saturated /doctor/second
# answer: yes
# after: any
group first 0-1
load first stream --threads 2 --ws 16MiB
group second
export UNDER="taskset 1"
load second stream --threads 4 --ws 8MiB --touch main --cpus 2-5
