# Threads on both nodes read and write what is theirs.
# silent: read-only-far
group own
load own chase --threads 4 --ws 8MiB --touch worker
