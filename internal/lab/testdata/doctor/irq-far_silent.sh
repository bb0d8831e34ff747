# Its user is next to it.
# silent: irq-far
group reader 2
forever reader dd if=/dev/vdb of=/dev/null bs=4k iflag=direct
