# Bound to node 0, with a third of its memory.
# silent: memory-too-tight
group fits 0-1 0
load fits chase --threads 1 --ws 8MiB --extra 200MiB
