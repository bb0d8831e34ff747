# The same threads, each with memory that it touched itself.
# ci
# silent: first-touch
group each
load each chase --threads 4 --ws 16MiB --touch worker
