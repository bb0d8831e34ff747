# Two busy threads that may run anywhere.
# silent: pinned-to-busy-cpu
group free
load free spin --threads 2
