// SPDX-License-Identifier: Apache-2.0

package lakew

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"homenode/internal/sim/arena"
	"homenode/internal/sim/runner"
)

// Applications are the paper's, in the order in which their curves are shown.
var Applications = []string{"mpegaudio", "sunflow", "sor", "fft", "derby", "sockshop", "neo4j", "stream"}

// because splits a factor into its causes: the CPU time that an operation takes, and the
// CPU time that VMs get. It also gives the most that the machine can cost an application
// when nothing else runs.
func (j *judge) because(groups []*group) string {
	cost, n := geometric(groups, func(g *group) (float64, bool) { return g.cheaper(runner.SMIPC, j.against) })
	f, m := factorOf(groups, runner.SMIPC, j.against)
	if n == 0 || m == 0 {
		return ""
	}
	was, now := meanLocal(groups, j.against), meanLocal(groups, runner.SMIPC)
	s := fmt.Sprintf("An operation takes %.3g times as much CPU time with Linux alone, and VMs get %.3g times less of it; %.0f %% of DRAM reads are local there, %.0f %% with SM-IPC.",
		cost, f/cost, 100*was, 100*now)
	if worst, at := j.worst(groups); worst > 0 {
		s += fmt.Sprintf(" All memory at distance %d makes the most sensitive of them %.3g times as slow while nothing else runs.", at, worst)
	}
	return s
}

// meanLocal is the mean local share of DRAM reads over groups.
func meanLocal(groups []*group, policy string) float64 {
	sum, n := 0.0, 0
	for _, g := range groups {
		if x, ok := g.mean(policy, local); ok {
			sum += x
			n++
		}
	}
	return sum / float64(max(1, n))
}

// worst is the largest slowdown of the groups' applications that distance alone causes.
func (j *judge) worst(groups []*group) (times float64, at int) {
	for _, p := range j.curve {
		if len(byApp(groups, p.App)) > 0 && p.Lost < 1 && 1/(1-p.Lost) > times {
			times, at = 1/(1-p.Lost), p.Distance
		}
	}
	return times, at
}

// The loss of the paper's mpegaudio.
const (
	inServerLeast, inServerMost = 0.05, 0.10 // at distances 16 and 22
	beyondMost                  = 0.17       // at 160 and 200
	beyond                      = 100        // a longer distance is to another server
)

// near and far judge the curve of a program that computes.
func (j *judge) near() arena.Finding {
	inside, outside := j.lost("mpegaudio")
	if len(inside) == 0 || len(outside) == 0 {
		return arena.Untested("%s", cmp.Or(j.why, "The machine does not have these distances."))
	}
	ok := !slices.ContainsFunc(inside, func(p Point) bool { return p.Lost < inServerLeast || p.Lost > inServerMost })
	return arena.Found(ok, points(inside), "One VM of 4 cores on one node, its memory on one other, nothing else running. "+
		"Latency follows distance here, so an application that loses a twentieth at 16 would lose most of its speed at 160. Both of the paper's figures can hold only if far memory is cached nearby, which its interconnect does and this model does not.")
}

func (j *judge) far() arena.Finding {
	inside, outside := j.lost("mpegaudio")
	if len(inside) == 0 || len(outside) == 0 {
		return arena.Untested("%s", cmp.Or(j.why, "The machine does not have these distances."))
	}
	ok := !slices.ContainsFunc(outside, func(p Point) bool { return p.Lost > beyondMost })
	return arena.Found(ok, points(outside), j.others())
}

// lost returns an application's points on its own server, its own node excepted, and on
// other servers.
func (j *judge) lost(app string) (inside, outside []Point) {
	for _, p := range j.curve {
		switch {
		case p.App != app || p.Distance <= 10:
		case p.Distance < beyond:
			inside = append(inside, p)
		default:
			outside = append(outside, p)
		}
	}
	return inside, outside
}

func points(all []Point) string {
	var s []string
	for _, p := range all {
		s = append(s, fmt.Sprintf("%.1f %% at %d", 100*p.Lost, p.Distance))
	}
	return strings.Join(s, ", ")
}

// others names what the farthest memory costs the other applications.
func (j *judge) others() string {
	var s []string
	for _, app := range Applications {
		_, outside := j.lost(app)
		if len(outside) > 0 && app != "mpegaudio" {
			p := outside[len(outside)-1]
			s = append(s, fmt.Sprintf("%s %.0f %%", app, 100*p.Lost))
		}
	}
	if len(s) == 0 {
		return "One VM of 4 cores on one node, its memory on one other, nothing else running."
	}
	return "What others lose at the farthest: " + strings.Join(s, ", ") + "."
}

// guests and hardware are statements that a simulated machine cannot test.
func guests(*judge) arena.Finding {
	return arena.Untested("There are no guests here: a VM is a workload with a thread a vCPU. What a guest's own kernel does (its spin locks, its page tables, its balancing) is not modelled.")
}

func hardware(*judge) arena.Finding {
	return arena.Untested("The machine is a model: distances are the paper's, latencies and bandwidths estimated. The interconnect's remote cache, coherence between servers (except for lines that threads of a VM add to), page-table and interrupt traffic are not in it.")
}
