# Forty huge pages on node 0, none on node 1.
# ci
# want: huge-page-pools
# after: any
echo 40 > /sys/devices/system/node/node0/hugepages/hugepages-2048kB/nr_hugepages
