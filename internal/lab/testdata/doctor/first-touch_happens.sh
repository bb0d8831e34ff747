# Four threads on both nodes read memory that their main thread touched first.
# ci
# want: first-touch homenode-load
group master
load master chase --threads 4 --ws 48MiB --shared --touch main
