# Node 0 is nearly full of another process's memory; memory that a service allocates there
# goes to node 1.
# want: allocation-fallback
# for: 4s
group hog 0 0
load hog spin --threads 1 --extra 580MiB --bind-mem 0
group service 1
forever service dd if=/dev/zero of=/dev/shm/doctor-x bs=1M count=200
