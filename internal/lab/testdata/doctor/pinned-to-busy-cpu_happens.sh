# Two busy threads that may only run on CPU 1; CPU 0 next to it is idle.
# want: pinned-to-busy-cpu
# after: no
group pinned
load pinned spin --threads 2 --bind-cpu 1
