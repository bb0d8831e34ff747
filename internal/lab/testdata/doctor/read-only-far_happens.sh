# Threads on both nodes read one table, which no process writes. A program beside them
# writes: where no store is sampled at all, nothing shows what is only read, and a chase
# stores less often than the least period of store samples (10,007, in half a second). It
# has a fifth of its CPU: with all of it a single thread of four was on its node, and 27 % of
# the loads were remote, where the rule wants 25.
# want: read-only-far
# for: 6s
# after: no
group writer
echo "20000 100000" > $base/doctor/writer/cpu.max
load writer stream --threads 1 --ws 64KiB --write --bind-cpu 3
group table
load table chase --threads 4 --ws 4MiB --shared --touch main
