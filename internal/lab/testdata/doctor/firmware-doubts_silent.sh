# The tables are correct.
# silent: firmware-doubts
group any
load any spin --threads 1
