# The same reading; zone_reclaim_mode is off.
# silent: zone-reclaim
bigfile
group files 0-1
forever files dd if=/scratch/big of=/dev/null bs=1M
cached 400 # a fifth of the memory is 307
