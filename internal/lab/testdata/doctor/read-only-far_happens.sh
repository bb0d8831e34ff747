# Threads on both nodes read one table, which no process writes.
# want: read-only-far
# for: 6s
# after: no
group table
load table chase --threads 4 --ws 4MiB --shared --touch main
