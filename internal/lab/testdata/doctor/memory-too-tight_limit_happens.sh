# Its limit is used up by memory that cannot be reclaimed.
# want: memory-too-tight of its limit of 200 MiB
# after: no
group full
echo 200M > $base/doctor/full/memory.max
load full spin --threads 1 --extra 193MiB
