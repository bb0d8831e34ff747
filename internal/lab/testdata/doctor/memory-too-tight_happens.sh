# Bound to node 0, with almost as much memory as the node has.
# want: memory-too-tight /doctor/tight
group tight 0-1 0
load tight chase --threads 1 --ws 8MiB --extra 620MiB
