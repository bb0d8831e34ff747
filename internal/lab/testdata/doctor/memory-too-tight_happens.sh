# Bound to node 0, with almost as much memory as the node has.
# want: memory-too-tight /doctor/tight
group tight 0-1 0
load tight spin --threads 1 --extra 652MiB
