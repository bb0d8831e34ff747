# Threads on both nodes read one table, which no process writes.
# want: read-only-far
# after: no
group table
load table chase --threads 4 --ws 8MiB --shared --touch main
