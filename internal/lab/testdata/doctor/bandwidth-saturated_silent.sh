# The same streams, each out of its own node's memory.
# model: warm
# silent: bandwidth-saturated
group near
load near stream --threads 4 --ws 32MiB --touch worker
