# Threads on both nodes write lines of their own.
# silent: shared-line
group own
load own stream --write --threads 4 --ws 4MiB --touch worker
