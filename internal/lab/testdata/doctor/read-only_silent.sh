# Threads on both nodes read and write what is theirs.
# silent: replicate-read-only
group own
load own chase --threads 4 --ws 8MiB --touch worker
