# Four threads on both nodes read memory that their main thread touched first.
# ci
# want: first-touch of its reads are remote, and
# after: any
group master
load master chase --threads 4 --ws 48MiB --shared --touch main
