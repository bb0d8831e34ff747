# Node 0 is nearly full of another process's memory; a part of what a service allocates
# there goes to node 1.
# want: allocation-fallback hardly any page cache
# for: 4s
# after: any
# stays
left() { sed -n 's/.*MemFree: *\([0-9]*\) kB/\1/p' /sys/devices/system/node/node0/meminfo; }
group hog 0 0
load hog spin --threads 1 --extra $(($(left) / 1024 - 70))MiB --bind-mem 0
group service 1
forever service dd if=/dev/zero of=/dev/shm/doctor-x bs=1M count=40
