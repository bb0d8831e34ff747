# Bound to one node, both ways.
# ci
# silent: cpuset-apart
# answer: no
group whole 0-1 0
load whole chase --threads 2 --ws 16MiB
