# A device on node 1, whose interrupts are served on node 0.
# want: irq-far
# after: any
group reader
for i in $(grep virtio /proc/interrupts | cut -d: -f1); do echo 0 > /proc/irq/$i/smp_affinity_list 2>/dev/null || true; done
forever reader dd if=/dev/hwrng of=/dev/null bs=64 count=1000
