# Threads on both nodes add to the same few lines.
# want: shared-line until the program is changed
# after: any
# stays
group counters
load counters rao --threads 4 --ws 64KiB --sharing 4KiB --share-every 2
