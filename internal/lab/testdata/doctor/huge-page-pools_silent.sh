# Twenty on each node.
# ci
# silent: huge-page-pools
for n in 0 1; do echo 20 > /sys/devices/system/node/node$n/hugepages/hugepages-2048kB/nr_hugepages; done
