# The tables are as they should be.
# silent: firmware-doubts
group any
load any spin --threads 1
