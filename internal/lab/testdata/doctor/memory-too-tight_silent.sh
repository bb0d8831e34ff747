# Bound to node 0, with a third of what it has.
# silent: memory-too-tight
group fits 0-1 0
load fits chase --threads 1 --ws 8MiB --extra 200MiB
