# A backup has read files from a CPU of node 0 until that node's memory is full of
# them; a service on node 0 wants memory, and gets it elsewhere.
# want: page-cache-fills-node
# for: 4s
# after: no
bigfile
group backup 0-1
forever backup dd if=/scratch/big of=/dev/null bs=1M
sleep 15
group service 0-1
forever service dd if=/dev/zero of=/dev/shm/doctor-x bs=1M count=15
