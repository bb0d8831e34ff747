# Two processes of two workloads, on two nodes, write one line and hardly read memory: no
# finding is about remote memory.
# want: shared-line until the program is changed
# silent: remote-workload
# after: any
# stays
truncate -s 4096 /dev/shm/doctor-line
group a
group b
load a share --threads 1 --sharing 64 --file /dev/shm/doctor-line --bind-cpu 0
load b share --threads 1 --sharing 64 --file /dev/shm/doctor-line --bind-cpu 2
