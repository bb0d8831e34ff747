# SPDX-License-Identifier: Apache-2.0
"""Fits MAO's sensitivity model: the share of latency that a replica saves when it is bound to a
NUMA node, from its counters before (MAO, Baidu).

    trials.parquet --data--> Trials --fit--> Gain --export--> gain.ubj, gain.scale.ubj, gain.json
                                |              |                             golden.json
                                +---evaluate---+--card--> gain.html
                     (services held out, beside the ceiling)

data        reads what 'homenode-lab sim trials' and 'homenode experiment' wrote
fit         the booster, its peers, and conformal intervals
evaluate    scores in the paper's protocol and with services or kinds held out
export      the files that homenode (Go) evaluates to the same bits
card        one page about the model
command     'homenode-model gain'

It never reads /proc and never binds a replica.
"""
