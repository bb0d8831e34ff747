# Four busy threads, one on each node of two CPUs, read what their main thread touched: two
# nodes hold them.
# shape: four
# want: wider-than-node /doctor/wide
# answer: yes
# after: any
# stays
group wide
export UNDER="taskset 1"
load wide chase --threads 4 --ws 48MiB --shared --touch main --cpus 0,2,4,6
