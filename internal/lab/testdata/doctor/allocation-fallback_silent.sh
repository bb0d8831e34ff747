# The same service with room on its node.
# silent: allocation-fallback
group service 1
forever service dd if=/dev/zero of=/dev/shm/doctor-x bs=1M count=100
