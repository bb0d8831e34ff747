# Node 0 is nearly full of another process's memory; what a service allocates there
# falls to node 1.
# want: allocation-fallback
# for: 4s
group hog 0 0
load hog spin --threads 1 --extra 580MiB --bind-mem 0
group service 1
forever service dd if=/dev/zero of=/dev/shm/doctor-x bs=1M count=200
