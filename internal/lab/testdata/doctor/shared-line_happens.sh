# Threads on both nodes add to one line: by the model's clock more lines get too few samples.
# for: 6s
# want: shared-line until the program is changed
# after: any
# stays
group counters
load counters rao --threads 4 --ws 64KiB --sharing 64 --share-every 2
