// SPDX-License-Identifier: Apache-2.0

package words

import "homenode/internal/render"

// sentences are by rule; template.go says what stands in braces and brackets.
var sentences = map[string]string{
	// MAO: workloads that stay unbound.
	"mao.skip.doubts":         "the machine's topology is in doubt: {detail}",
	"mao.skip.not-approved":   "its service is not approved for binding",
	"mao.skip.pinned":         "another process restricts its CPUs[: {detail}]",
	"mao.skip.backoff":        "it was unbound or refused, and is left alone until window {until}",
	"mao.skip.too-soon":       "it has been below its target for {windows_below} of the {windows_below.limit} windows in a row that it takes[{local_access_ratio|estimated}]",
	"mao.skip.unbinding":      "it would be placed, but something was unbound or widened in this window: first see what that did",
	"mao.skip.limit":          "it would be placed, but this window's limit of {binds.limit} is used up",
	"mao.skip.one-node":       "there is only one node with CPUs and memory",
	"mao.skip.no-gain":        "the best placement would make about {expected_local_ratio|percent} of its accesses local, {local_access_ratio|percent} are local now",
	"mao.skip.gone":           "it had vanished when it was to be changed: this is a new one of its name, or a late reading",
	"mao.skip.cpu":            "no node set has enough CPU left for what it uses: binding would take CPU away from it[; nodes {nodes} come closest: it needs {cpu_needed} CPUs, {cpu_needed.limit} are left]",
	"mao.skip.memory":         "no node set has enough memory left for its pages[; nodes {nodes} come closest: it needs {memory_needed}, {memory_needed.limit} are left][; how much memory nodes {nodes} have free is unknown{memory_needed|unlimited}]",
	"mao.skip.bandwidth":      "no node set has enough memory bandwidth left for its traffic, so its memory stays spread[; nodes {nodes} come closest: there would be {bandwidth_needed} of DRAM traffic, the limit is {bandwidth_needed.limit}]",
	"mao.skip.device":         "no node set with one of its devices has room, and require_near demands one[; nodes {nodes} come closest]",
	"mao.skip.mems":           "its cgroup may not use any node that has room",
	"mao.skip.empty":          "no node has both CPUs and memory",
	"mao.skip.service":        "[its service is bound as a whole or not at all, and replica {other} cannot be bound: {cause}][no replica of its service would have more local accesses than now{no other}]",
	"mao.keep.unknown":        "[its local access ratio is unknown{local_access_ratio|unknown}: {local_access_ratio|from}][its CPU use or its pages by node are unknown, so nothing says where it fits{local_access_ratio|known}]",
	"mao.keep.no-signal":      "[it used {cpu_used} CPUs, too little to judge by][it read DRAM {dram_reads} times, too rarely to judge by]",
	"mao.keep.counted-lately": "its local access ratio was {ratio_then} by a better source {windows_ago} windows ago, and is only estimated in this one: it is not judged by that",
	"mao.keep.on-target":      "{local_access_ratio} of its accesses are local, the target is {local_access_ratio.limit}{local_access_ratio|estimated}[: below that by less than an estimate may be off ({estimate_error}), times estimate_margin]",
	"mao.unplaceable":         "its CPU use or its pages by node are unknown",
	// MAO: workloads that are bound.
	"mao.bind": "{local_access_ratio} of its accesses are local, the target is {local_access_ratio.limit}{local_access_ratio|estimated}; it has room on nodes {nodes}",
	"mao.keep.bound": "bound to nodes {nodes} since window {since}; nothing asks for an unbind" +
		"[: it uses {cpu_of_quota} CPUs, less than the {cpu_of_quota.limit} that count as all it may use{cpu_of_quota|decides}]" +
		"[: it uses {cpu_of_binding} CPUs, less than the {cpu_of_binding.limit} that count as all it may use{cpu_of_binding|decides}]" +
		"[: its busiest node is {node_ahead_of_others|points} points busier than the others, below the limit of {node_ahead_of_others.limit|points}{node_ahead_of_others|decides}]" +
		"[: its busiest node is {node_utilisation|percent} busy, not above the limit of {node_utilisation.limit|percent}{node_utilisation|decides}]" +
		"[: its busiest node has no history yet to compare with{node_utilisation|unlimited}{node_utilisation|decides}]",
	"mao.keep.below-target":   "bound to nodes {nodes} since window {since}, and still only {mean_local} local: {cause}",
	"mao.below.pinned":        "its memory may not be moved[: {detail}]",
	"mao.below.wide":          "one node's CPUs are not enough for it",
	"mao.below.pages":         "{pages_elsewhere|percent} of its pages are elsewhere",
	"mao.widen":               "memory of its nodes will run out within {widen_windows} windows: {memory_wanted.limit} are left; it may use nodes {nodes} from now on",
	"mao.refused":             "its binding was refused or undone[: {cause}][: {detail}]; it is left alone until window {until}",
	"mao.drifted":             "another process changed its binding[: {cause}][: {detail}]; it is left alone until window {until}",
	"mao.unbind.A":            "it uses all the CPU it may, and node {nodes} is {node_utilisation|percent} busy[; it is not bound again before window {until}]",
	"mao.unbind.B":            "it uses all the CPU it may, and node {nodes} is {node_utilisation|percent} busy: {node_ahead_of_others|points} points more than the others, and more than in 95% of its past[; it is not bound again before window {until}]",
	"mao.unbind.node-gone":    "nodes {nodes} of its binding are offline[; it is not bound again before window {until}]",
	"mao.unbind.not-approved": "its service is no longer approved for binding[; it is not bound again before window {until}]",
	"mao.unbind.orphan":       "homenode bound it, but nothing here asks for that",
	"mao.unbind.memory":       "memory of nodes {nodes} will run out within {widen_windows} windows: {memory_wanted.limit} are left, and no other node that it may use has any[; it is not bound again before window {until}]",
	"mao.unbind.service":      "replica {other} of its service is unbound, and all of them are to be alike[; it is not bound again before window {until}]",
	"mao.unbind.uneven":       "{replicas_unbound} of {replicas_unbound.limit} replicas of its service are not bound, the last bind was {windows_since_bind} windows ago, and all of them are to be alike[; it is not bound again before window {until}]",
	// MAO: room for bound workloads.
	"mao.room":               "unbound workloads use CPUs that bound ones need, and nodes {nodes} have room for all of them",
	"mao.keep.aside":         "it keeps to nodes {nodes}, to leave the others to what is bound there",
	"mao.room.over":          "it gets all CPUs back: {cause}[; it is not asked to make room again before window {until}]",
	"mao.over.nothing-bound": "nothing is bound any more",
	"mao.over.offline":       "one of its nodes went offline",
	"mao.over.bound-there":   "workloads are bound to nodes {nodes} now",
	"mao.over.used-up":       "nodes {nodes} are used up while others have {idle_elsewhere} CPUs idle",
	"mao.over.approved":      "its service is approved for binding now",
	// MAO: isolation.
	"mao.isolate":        "[{other} does {times_its_past|worse} worse than it did at the same load and lacks no CPU, and this workload pollutes most beside it: it is limited][, to {cache_allowed|percent} of the caches][, to {bandwidth_allowed|percent} of the memory bandwidth]",
	"mao.isolate.over":   "it may use all of the caches and the memory bandwidth again: {cause}",
	"mao.over.off":       "isolation is switched off",
	"mao.over.unbound":   "the workload that it was isolated for is not bound any more",
	"mao.over.no-step":   "the configuration has no such step any more",
	"mao.over.to-see":    "after {windows_isolated} windows it is given back, to see whether it is still needed",
	"mao.over.vain":      "it did not help: {other} does {times_its_past|worse} worse than it did at the same load, and did {times_its_past.limit|worse} worse before",
	"mao.keep.contended": "it does [{times_its_past|worse} ]worse than it did at the same load, nothing here helped, and that was escalated: nothing more is tried before window {until}",
	"mao.escalate":       "bound to nodes {nodes} and at home, it has done {times_its_past|worse} worse than before at the same load for {windows_worse} windows, without lack of CPU[; isolating {detail} did not help][{no detail}; no neighbour is known to pollute, or may be isolated]; this host cannot help it",

	// Threads.
	"brm.no-threads":    "its threads are not read one by one",
	"brm.release":       "its threads are given back the CPUs that they had",
	"brm.home":          "nothing came of the trial: its threads go back to where they were",
	"brm.bias":          "threads go to the node where the penalty was least",
	"brm.trial":         "it waits for memory: a trial shows whether its threads do better on other nodes",
	"brm.explore":       "threads try nodes that they do not know",
	"brm.swap":          "threads change places with others that gain more by it than they lose",
	"brm.full":          "where its threads would go, no CPU is as free as theirs, and no thread gains by changing places",
	"brm.pinned":        "another process has tied its threads to CPUs: they are left alone",
	"brm.stay":          "[its threads' penalties are unknown: they stay where they are{workload_penalty|unknown}][its threads know no other node yet: they stay for now{workload_penalty|known}{node_response|unknown}][its threads are where the penalty is least, or their draw was to stay{workload_penalty|known}{node_response|known}]",
	"brm.tagged":        "its operator says that it runs as well on any node",
	"brm.not-tagged":    "the configuration does not say whether it matters where it runs, and inference is off",
	"brm.not-sensitive": "[it hardly waits for memory{stall_share|under}][it waits for memory, but on one node as on another{stall_share|over}]",
	"brm.unknown":       "[it is unknown whether it matters where it runs: its threads' waits are not counted{stall_share|unknown}][it is not known yet whether it matters where it runs{stall_share|known}]",

	// numad.
	"numad.wait":         "it is not yet time for the next scan",
	"numad.keep":         "it is where it should be, or another one came first",
	"numad.keep.all":     "it needs all nodes",
	"numad.keep.home":    "it is on its nodes, and so is its memory",
	"numad.keep.follows": "it is on its nodes; its memory follows as it can",
	"numad.bind":         "nodes {nodes} have CPU × memory for its {cpu} CPUs and {anon}",
	"numad.bind.again":   "it was unbound from other nodes for this",
	"numad.drifted":      "another process changed its binding: what is left of it is given back",
	"numad.skip.pinned":  "another process pinned it[: {detail}]",
	"numad.skip.small":   "it uses {cpu} CPUs and {anon}: too little to care",
	"numad.skip.recent":  "it was looked at less than {seconds_since.limit} ago",

	// Animal classes.
	"animal.arrive":              "a free slot suits it: as a {detail} it goes to nodes {nodes}",
	"animal.arrive.least-bad":    "no slot suits it, and no few moves make one: as a {detail} it goes to the least bad one, on nodes {nodes}",
	"animal.arrive.after-moves":  "{moves} others move for it: as a {detail} it goes to nodes {nodes}",
	"animal.reshuffle":           "it makes room for {other}: as a {detail} it goes to nodes {nodes}",
	"animal.interference":        "it runs {worse_than_expected|percent} worse than expected, and {moves} moves win {gain|short} CPUs' worth for {price|short}: as a {detail} it goes to nodes {nodes}",
	"animal.interference.leaves": "it leaves the cache of {other}, which runs {worse_than_expected|percent} worse than expected: as a {detail} it goes to nodes {nodes}",
	"animal.interference.stays":  "it runs {worse_than_expected|percent} worse than expected: it stays, and {moves} others leave its cache",
	"animal.keep":                "a {detail}, it stays on nodes {nodes}",
	"animal.keep.settling":       "its memory follows",
	"animal.keep.spin":           "its threads wait for each other, and some spin, as far as their counters show: its instructions do not say how well it runs",
	"animal.keep.turn":           "it is affected, and another move is under way",
	"animal.keep.tired":          "it is affected, and enough was tried for others in this window",
	"animal.keep.cool":           "it is affected, and was moved not long ago",
	"animal.keep.price":          "it is affected: {moves} moves would win {gain|short} CPUs' worth, and cost {price|short}",
	"animal.keep.best":           "it is affected, and no better place is known",
	"animal.lost":                "some of its CPUs are gone, or used by another process",
	"animal.moving":              "it goes on to its new place",
	"animal.moving.back":         "what it had is being given back",
	"animal.orphan":              "it is bound, and has no place: it is given back first",
	"animal.backoff":             "it is left alone for a while",
	"animal.wait":                "there is no room for {cpus|short} CPUs and {memory}",
	"animal.refused":             "its binding was refused[: {cause}][: {detail}]",
	"animal.drifted":             "another process changed its binding[: {cause}][: {detail}]",
	"animal.skip.pinned":         "another process pinned it[: {detail}]",
	"animal.skip.size":           "neither its tasks nor its quota are known: so it is unknown how many CPUs it needs",

	// Steps on the way to a binding.
	"actuate.no-cpu":           "[nodes {nodes} have no CPU that it may use{no detail}][nodes {nodes} have none of the CPUs {detail} that it may use]",
	"actuate.only-mems":        "its cgroup may use the memory of nodes {nodes} only",
	"actuate.restoring":        "what it had before is still being restored",
	"actuate.gone":             "it is not in this window",
	"actuate.waits-after-undo": "its last bind was undone on its way ({undone_in_a_row|short} in a row): it waits {windows_to_wait} windows",
	"actuate.dry-run":          "a dry run",
	"actuate.changed":          "another process changed it[: {detail}]",
	"actuate.cpus-changed":     "another process changed its CPUs to {detail}",
	"actuate.mems-changed":     "another process changed its memory nodes to {nodes}, homenode had set {detail}",
	"actuate.refused":          "it was refused[: {detail}]",
	"actuate.failed":           "it was given up after {failures|short} failures[: {detail}]",
	"actuate.restore-failed":   "what it had cannot be restored yet[: {detail}]",
	"actuate.moves-refused":    "its pages may not be moved[: {detail}]",
	"actuate.mems-refused":     "setting its memory nodes was refused[: {detail}]",
	"actuate.mems-failed":      "setting its memory nodes failed {failures|short} times[: {detail}]",
	"actuate.not-movable":      "its memory is not to be moved[: {detail}]",
	"actuate.pages-unknown":    "its pages by node are unknown",
	"actuate.stuck":            "{bytes_elsewhere} of {bytes_elsewhere.limit} stay elsewhere: no page moved in {windows_without_progress} windows",
	"actuate.waits":            "{bytes_elsewhere} stay elsewhere until moving has paid for {windows_to_pay} windows[: its pages were moved once in the last {horizon}{moves|once}][: its pages were moved {moves|short} times in the last {horizon}{moves|many}]",
	"actuate.class.over":       "it is not asked for any more",
	"actuate.way":              wayExpected,
	"actuate.way.home":         wayExpected + "; it took {took} and moved {moved}[, worse for {was_below}{was_below|some}]",
	"actuate.way.unexpected":   "{detail}: how local it was before is unknown, so nothing can be expected",
	"actuate.way.unknown":      "its pages by node are unknown, so its memory cannot go first",
	"actuate.way.none":         "not bound: moving {bytes_to_move} at {mover_rate} takes {expected_home}, and until then it would lose more than it gains in {horizon}, even {detail}",
	"actuate.way.stuck":        "{bytes_elsewhere} of {bytes_elsewhere.limit} stay elsewhere: no page moved in {windows_without_progress} windows, and CPUs alone would make it worse",
	"actuate.way.refused":      "its pages may not be moved, and CPUs alone would make it worse[: {detail}]",
	"actuate.way.failed":       "moving its pages failed {failures|short} times[: {detail}]",
	"actuate.undone.slow":      "undone on its way: its memory follows at {rate_lately}, less than a third of the {mover_rate} that was measured before; {moved_so_far} of {moved_so_far.limit} had moved",
	"actuate.undone.late":      "undone on its way: after {elapsed}, where {expected_home} was expected, too little of its memory is there: {moved_so_far} were moved, and CPUs would still make it worse",
	"actuate.undone.worse":     "undone on its way: its [local access ratio was {local_access_ratio}, less than {local_access_ratio.limit},][work per cycle was {work_per_cycle}, less than {work_per_cycle.limit},] for {below}, where {below.limit} was expected",

	// Whether moving pages pays.
	"migration.sum": "its remote memory: {remote_bytes}; [{remote_loads|short} remote loads/s × {saved_per_load|ns} ns × {horizon|short} s = {move_gain|short} CPU-s saved][what it would save is unknown{move_gain|unknown} ({move_gain|from})]" +
		"[, {move_cost|short} CPU-s cost][, the cost is unknown{move_cost|unknown} ({move_cost|from})][ (with that of {undone_bytes} that were moved here before)]",
	"migration.sum-bounded": "its remote memory: {remote_bytes}; {remote_loads|short} remote loads/s × {saved_per_load|ns} ns × {horizon|short} s, but it waits for no more than {most_saved|short} CPU-s of that: {move_gain|short} CPU-s saved" +
		"[, {move_cost|short} CPU-s cost][, the cost is unknown{move_cost|unknown} ({move_cost|from})][ (with that of {undone_bytes} that were moved here before)]",
	"migration.pays":        "moving {remote_bytes} would cost {move_cost|short} CPU-s and save {move_gain|short} in {horizon}[ (pay_ratio {pay_ratio|short})]",
	"migration.pays-not":    "moving {remote_bytes} would cost [{move_cost|short} CPU-s][an unknown time{move_cost|unknown}] and save [{move_gain|short}{move_gain|some}][nothing{move_gain|none}] in {horizon}[ (pay_ratio {pay_ratio|short})]",
	"migration.spread":      "moving {remote_bytes} would fill its home's memory: {node_fill} of what it delivers, so that its work takes {crowded|short} times as long; spread its memory over more nodes (interleave)",
	"migration.too-little":  "{private_remote_bytes} of private memory are elsewhere, and no step is made for {private_remote_bytes.limit} or less",
	"migration.cannot-tell": "it is unknown whether moving {remote_bytes} pays: [{move_gain|unknown}{move_gain|from}][{move_gain|known}{move_cost|from}]",

	// Placed by hand.
	"hand":         "the search over placements found this the best",
	"hand-threads": "the search over placements of threads found this the best",
	"top.bind":     "the operator asked for it on the screen of homenode top",
	"top.unbind":   "the operator asked for it on the screen of homenode top",
}

const wayExpected = "{detail}: {bytes_to_move} to move at {mover_rate} ({mover_rate|how}: {mover_rate|from}), {expected_home} expected, windows at least {expected_least_local} local[, worse than before for up to {expected_below}{expected_below|some}][; {others_first} of others may move first]"

// codes of alternatives that have no figures.
var codes = map[string]string{
	"device": "it has room, but none of its devices",
	"mems":   "its cgroup may not use this node",
	"empty":  "it has no CPUs to bind to, or no memory",
}

// phrases are for the figures of alternatives.
var phrases = map[string]func(float64) string{
	"cost":                        func(v float64) string { return "cost " + render.Ratio(v) },
	"memory_that_stays_elsewhere": func(v float64) string { return render.Percent(v) + " of its memory is elsewhere and stays" },
	"bytes_to_move":               func(v float64) string { return render.Bytes(v) + " to move" },
	"share_to_move":               func(v float64) string { return "which is " + render.Percent(v) + " of its memory" },
	"traffic_of_others":           func(v float64) string { return "others' traffic " + render.Percent(v) },
	"cpu_of_others":               func(v float64) string { return "CPU " + render.Percent(v) },
	"company":                     func(v float64) string { return "company " + render.Percent(v) },
	"distance_to_devices":         func(v float64) string { return "devices " + render.Percent(v) },
	"distance_inside":             func(v float64) string { return "distance " + render.Commas(v) + " in all" },
	"quota_needed":                func(v float64) string { return "its whole quota of " + render.CPUs(v) + " CPUs does not fit" },
	"cpu_needed":                  func(v float64) string { return "it needs " + render.CPUs(v) + " CPUs" },
	"cpu_left":                    func(v float64) string { return render.CPUs(v) + " are left" },
	"memory_needed":               func(v float64) string { return "it needs " + render.Bytes(v) },
	"memory_left":                 func(v float64) string { return render.Bytes(v) + " are left" },
	"bandwidth_needed":            func(v float64) string { return "there would be " + render.Bytes(v) + "/s of DRAM traffic" },
	"bandwidth_left":              func(v float64) string { return "the limit is " + render.Bytes(v) + "/s" },
	"cache_allowed":               func(v float64) string { return render.Percent(v) + " of the caches" },
	"bandwidth_allowed":           func(v float64) string { return render.Percent(v) + " of the memory bandwidth" },
	"home_s":                      func(v float64) string { return "home in " + render.Seconds(v) },
	"least_local":                 func(v float64) string { return "windows at least " + render.Percent(v) + " local" },
	"below_s": func(v float64) string {
		if v == 0 {
			return "no window worse than before"
		}
		return "worse than before for " + render.Seconds(v)
	},
}
