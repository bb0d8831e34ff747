# Four threads, two on each node, read memory that their main thread touched first. Each has
# a CPU of its own: where they are free, the doctor's own work pushes them to one node.
# ci
# want: first-touch of its reads are remote, and
# after: any
group master
load master chase --threads 4 --cpus 0-3 --ws 48MiB --shared --touch main
