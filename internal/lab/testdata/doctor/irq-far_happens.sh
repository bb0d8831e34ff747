# A disk on node 1; its only user, and so its interrupts, are on node 0.
# want: irq-far
group reader 0
forever reader dd if=/dev/vdb of=/dev/null bs=4k iflag=direct
