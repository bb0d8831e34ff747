# The table of node 1 claims the CPUs of node 0, too.
# want: firmware-doubts all claim cpus
# after: any
# stays
printf 'f\n' > /tmp/doctor-map
printf '0-3\n' > /tmp/doctor-list
mount -o bind /tmp/doctor-map /sys/devices/system/node/node1/cpumap
mount -o bind /tmp/doctor-list /sys/devices/system/node/node1/cpulist
group any
load any spin --threads 1
