# Bound to node 0 with more memory than it has; it swaps while node 1 is free.
# want: swap-beside-free
# answer: yes
# after: no
# settle: 30
# for: 5s
mkswap /dev/vdb >/dev/null
swapon /dev/vdb
group swaps 0-1 0
load swaps stream --write --threads 1 --ws 700MiB
