# Threads on both nodes read and write their own memory.
# silent: read-only-far
group own
load own chase --threads 4 --ws 8MiB --touch worker
