# zone_reclaim_mode is on, and a file server's cache may not use the other node.
# want: zone-reclaim
# after: any
echo 1 > /proc/sys/vm/zone_reclaim_mode
bigfile
group files 0-1
forever files dd if=/scratch/big of=/dev/null bs=1M
cached 400 # a fifth of the memory is 307
