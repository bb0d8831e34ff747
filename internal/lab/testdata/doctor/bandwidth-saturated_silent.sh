# The same streams, each out of its own node's memory.
# shape: four
# silent: bandwidth-saturated
group near
load near stream --threads 6 --ws 16MiB --touch worker --cpus 0-5
