# SPDX-License-Identifier: Apache-2.0
"""Fits homenode's model of placements (Funston et al., USENIX ATC 2018, section 5).

    rows.parquet --data--> DataSet --choose--> probes --fit--> Forest --export--> model.json
                              |                                  |
                              +---evaluate (leave one out)-------+--card--> model.html

data        reads what 'homenode-lab sim placements' wrote
fit         which placements to probe, and the forest from probes to all placements
evaluate    errors on applications and kinds that were left out, and coverage of intervals
categories  which workloads react alike
export      the file that internal/model (Go) evaluates to the same bits
card        one page about a model
page        what the cards of all models share
gain        another model: what a binding to a NUMA node gains, from counters

It never reads /proc and never runs a workload.
"""

__version__ = "0.1.0"
