# Swap is there, and nothing needs it.
# silent: swap-beside-free
mkswap /dev/vdb >/dev/null
swapon /dev/vdb
group fits 0-1 0
load fits stream --write --threads 1 --ws 100MiB
