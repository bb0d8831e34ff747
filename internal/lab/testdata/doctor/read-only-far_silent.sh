# Threads on both nodes read their own memory; a program beside them writes, as in the
# case that happens.
# silent: read-only-far
group writer
load writer stream --threads 1 --ws 64KiB --write --bind-cpu 3
group own
load own chase --threads 4 --ws 8MiB --touch worker
