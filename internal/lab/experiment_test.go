// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"homenode/internal/profiling"
)

const (
	experimentLive = `homenode experiment --workload a --repeats 4 --metric file:/tmp/prof-count --counter --warm-up 100ms --for 500ms --rate max --nodes 0 --rows /tmp/prof.parquet`
	// whenBound waits until the workload is bound; the experiment is $pid.
	whenBound = `while [ "$(cat /sys/fs/cgroup/prof/a/cpuset.cpus.effective)" = 0-3 ]; do sleep 0.01; kill -0 $pid || exit 1; done`
)

// memoryByNode is how much anonymous memory and page cache of the workload each node has.
func memoryByNode(t *testing.T, g *Guest) (bytes []float64) {
	t.Helper()
	text := mustRun(t, g, "sh", "-c", "grep -E '^(anon|file) ' /sys/fs/cgroup/prof/a/memory.numa_stat")
	for i, m := range regexp.MustCompile(`N\d+=(\d+)`).FindAllStringSubmatch(text, -1) {
		v, err := strconv.ParseFloat(m[1], 64)
		if err != nil {
			t.Fatal(err)
		}
		if i < 2 { // a line has both nodes
			bytes = append(bytes, 0)
		}
		bytes[i%2] += v
	}
	return bytes
}

// A running workload is bound and unbound by turns. A kill -9 in the middle leaves nothing after
// 'homenode restore', the same command continues, and afterwards its settings and how its
// memory is spread are as before.
func TestLabExperiment(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("-short: no lab boot")
	}
	// A guest of its own: after so much moving, others would find fewer huge pages.
	g := boot(t, labOptionsFor(t, "two", "v2"))
	t.Cleanup(g.Close)
	t.Cleanup(func() { mustRun(t, g, "sh", "-c", tearDownProfile) })
	// Its memory is on node 1, whose CPUs others use: unbound, its reads are remote.
	mustRun(t, g, "sh", "-c", strings.Replace(fmt.Sprintf(setUpProfile, 2), "--out", "--count /tmp/prof-count --out", 1)+`
homenode migrate --workload a --to 1 >/dev/null || [ $? = 4 ] || exit 1
homenode run --cpus 2-3 -- homenode-load spin --threads 6 </dev/null >/dev/null 2>&1 &`)
	before, memory := mustRun(t, g, "sh", "-c", snapshotProfile), memoryByNode(t, g)
	unchanged := func(when string) {
		t.Helper()
		if now := mustRun(t, g, "sh", "-c", snapshotProfile); now != before {
			t.Fatalf("%s: left behind:\n%s\nbefore:\n%s", when, now, before)
		}
	}
	says := func(exit int, script string, words ...string) Result {
		t.Helper()
		r := runs(t, g, script)
		for _, w := range words {
			if r.Exit != exit || !strings.Contains(r.Stdout+r.Stderr, w) {
				t.Fatalf("%s: exit %d, want %d and %q\n%s%s", script, r.Exit, exit, w, r.Stdout, r.Stderr)
			}
		}
		return r
	}
	says(0, strings.Replace(experimentLive, "--nodes 0", "--dry-run", 1), "nothing is changed", "which the agent's policy chose", "moving its memory to nodes")
	unchanged("dry run")

	mustRun(t, g, "sh", "-c", experimentLive+` >/tmp/prof.out 2>&1 & pid=$!; `+whenBound+`; kill -9 $pid; wait $pid; true`)
	if mustRun(t, g, "sh", "-c", snapshotProfile) == before {
		t.Error("it was killed before it had changed anything: nothing was tried")
	}
	says(0, "homenode restore", "cpuset.cpus")
	unchanged("kill -9")
	says(3, experimentLive+` & pid=$!; `+whenBound+`; kill $pid; wait $pid`, "the same command continues")
	unchanged("SIGTERM")

	r := says(0, experimentLive+" -o json", `"complete"`)
	unchanged("complete")
	var got profiling.TrialReport
	if err := json.Unmarshal([]byte(r.Stdout), &got); err != nil {
		t.Fatal(err)
	}
	if got.Speeds[0] == nil || got.Speeds[1] == nil || got.Features.RMBR == nil {
		t.Fatalf("%+v", got)
	}
	t.Logf("unbound %.4g, bound %.4g operations a second; %.2f of its reads were remote before", got.Speeds[0].Values, got.Speeds[1].Values, *got.Features.RMBR)
	t.Logf("%s: gain %.3f (%.3f to %.3f), halves %.3f and %.3f", got.Shown, got.Time.Value.Or(math.NaN()), got.Time.CI.Low, got.Time.CI.High, got.Halves[0].Value.Or(math.NaN()), got.Halves[1].Value.Or(math.NaN()))
	if !(got.Time.Value.Or(0) > 0.1) || got.How.String() != "modelled" || *got.Features.RMBR < 0.9 || !got.CPUTime.Value.Known() {
		t.Errorf("%+v", got)
	}
	says(0, "ls /tmp/prof.parquet && [ ! -e /tmp/prof.parquet.unfinished ]", "prof.parquet")
	for n, was := range memory {
		if now := memoryByNode(t, g)[n]; math.Abs(now-was) > 0.05*(memory[0]+memory[1]) {
			t.Errorf("node %d has %.0f bytes of its memory, before %.0f", n, now, was)
		}
	}
	deploysLive(t, g, says, unchanged)
	says(2, experimentLive+" --nodes 0-1", "changes nothing")
	says(2, experimentLive+" --repeats 6", "a multiple of 4")
	mustRun(t, g, "sh", "-c", "echo 0-1 > /sys/fs/cgroup/prof/a/cpuset.cpus")
	says(2, experimentLive, "another program has limited it")
	mustRun(t, g, "sh", "-c", "echo 0-3 > /sys/fs/cgroup/prof/a/cpuset.cpus")
	says(2, experimentLive+` --for 10m >/tmp/prof.out 2>&1 & pid=$!
until grep -q looking /tmp/prof.out; do sleep 0.01; kill -0 $pid || break; done; killall -9 homenode-load; wait $pid; exit=$?; cat /tmp/prof.out; exit $exit`, "has ended")
}
