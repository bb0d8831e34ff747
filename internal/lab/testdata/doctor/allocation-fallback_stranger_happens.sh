# Node 0 is nearly full of the memory of a process that runs on node 1; a part of what a
# service allocates on node 0 goes to node 1.
# want: allocation-fallback
# for: 4s
# after: any
left() { sed -n 's/.*MemFree: *\([0-9]*\) kB/\1/p' /sys/devices/system/node/node0/meminfo; }
group hog 2-3
load hog spin --threads 1 --extra $(($(left) / 1024 - 70))MiB --bind-mem 0 --bind-cpu 2
group service 1
forever service dd if=/dev/zero of=/dev/shm/doctor-x bs=1M count=40
