# A thread pinned to node 0, whose memory came from node 1, because another program's
# memory fills node 0: its pages cannot come home.
# want: remote-workload would have to move to node 0
# answer: yes
# after: yes
# stays
left() { sed -n 's/.*MemFree: *\([0-9]*\) kB/\1/p' /sys/devices/system/node/node0/meminfo; }
group hog
load hog spin --threads 1 --bind-cpu 2 --extra $(($(left) / 1024 - 90))MiB --bind-mem 0
group pinned
load pinned chase --threads 1 --ws 96MiB --bind-cpu 0
