# The main thread touches all memory on node 0; two of three readers are on node 1.
# want: first-touch homenode-load
# answer: yes
# after: any
group master
export UNDER="taskset 1"
load master chase --threads 3 --ws 48MiB --shared --touch main --cpus 0,2,3
