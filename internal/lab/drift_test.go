// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// The settings of the other process. None of them is one that the agent makes: its CPUs
// are a node's, and so are its nodes. "0-3" and "0-1" leave the workload unbound, so that
// the agent binds it again.
var othersSettings = map[string][]string{
	"cpuset.cpus": {"0-3", "0-3", "0-2", "1-3"},
	"cpuset.mems": {"0-1"},
}

// otherWriter is a process that sets the same cpusets, over and over, until it is told to
// end. Its log has each setting that it made.
func otherWriter(rng *rand.Rand, base string) []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "w() { [ ! -e /tmp/kill-stop ] || exit 0; echo $3 > %s/kill/$1/$2 && echo $1/$2 $3 >> /tmp/kill-writer.log; sleep $4; }\n", base)
	b.WriteString("while :; do\n")
	for range 40 {
		file := []string{"cpuset.cpus", "cpuset.mems"}[rng.IntN(2)]
		values := othersSettings[file]
		fmt.Fprintf(&b, "w %s %s %s %.2f\n", []string{"a", "b"}[rng.IntN(2)], file, values[rng.IntN(len(values))], 0.05+rng.Float64())
	}
	b.WriteString("done\n")
	return []byte(b.String())
}

const (
	// everythingAllowed is where each point begins.
	everythingAllowed = `for c in a b; do echo 0-3 > %[1]s/kill/$c/cpuset.cpus; echo 0-1 > %[1]s/kill/$c/cpuset.mems; done; rm -f /tmp/kill-stop; : > /tmp/kill-writer.log`
	startBoth         = `homenode-agent agent --config /etc/kill.yaml </dev/null >/dev/null 2>/tmp/kill-agent.log &
sh /etc/kill-writer </dev/null >/dev/null 2>&1 & echo $! > /tmp/kill-writer.pid`
	endWriter  = `touch /tmp/kill-stop; while kill -0 $(cat /tmp/kill-writer.pid) 2>/dev/null; do sleep 0.05; done; true`
	setNow     = `cd %s/kill; for c in a b; do for f in cpuset.cpus cpuset.mems; do echo $c/$f $(cat $c/$f); done; done`
	driftsSeen = `grep -c status=drifted /tmp/kill-agent.log; true`
)

// An agent is killed at a random point while another process sets the same cpusets. After
// `homenode restore`, or the next agent's start and end, nothing of the agent's is left, and
// what the other process set last before the restore is still there.
func TestLabKilledBesideAnotherWriter(t *testing.T) {
	t.Parallel()
	onlyFull(t)
	g := guest(t, "two", "v2")
	base := cgroupBase("v2")
	rng := rand.New(rand.NewPCG(killSeed(), 20))
	mustPut(t, g, "/etc/kill-writer", otherWriter(rng, base))
	toKill(t, g, base, killConfig, awayB)
	c := besideWriter{t: t, g: g, base: base}
	points := killPoints(t, 6)
	for i := range points {
		c.point(i, 2*c.acts*rng.Float64())
		if (i+1)%10 == 0 { // a run that is cut off tells how far it came
			t.Logf("%d points: %d after the agent had changed something, %d changes of the other's seen, %d lost", i+1, c.acted, c.drifts, c.lost)
		}
	}
	t.Logf("%d kill points beside another writer, %d of them after the agent had changed something; it saw %d changes of the other's; %d settings of the other's were lost between the agent's reading and its write",
		points, c.acted, c.drifts, c.lost)
	if c.acted == 0 || c.drifts == 0 {
		t.Errorf("the agent acted before %d kill points and saw %d changes: nothing was tried; its log: %s", c.acted, c.drifts, mustRun(t, g, "cat", "/tmp/kill-agent.log"))
	}
}

// onlyFull: these take minutes of the guest's time.
func onlyFull(t *testing.T) {
	t.Helper()
	if os.Getenv("HOMENODE_HOSTILE") == "" {
		t.Skip("HOMENODE_HOSTILE is not set: it takes minutes; make test-full sets it")
	}
}

type besideWriter struct {
	t                   *testing.T
	g                   *Guest
	base                string
	acted, drifts, lost int
	acts                float64 // after how many of the guest's seconds the agent had acted, and was overruled
}

func (c *besideWriter) sh(script string, args ...any) string {
	c.t.Helper()
	if len(args) > 0 {
		script = fmt.Sprintf(script, args...)
	}
	return mustRun(c.t, c.g, "sh", "-c", script)
}

// point kills the agent after delay, seconds of the guest's. Half of the points end the other process before the
// restore, so that its last settings are known exactly; beside the others it goes on.
func (c *besideWriter) point(i int, delay float64) {
	c.t.Helper()
	c.sh(everythingAllowed, c.base)
	began := c.g.seconds()
	c.sh(startBoth)
	c.sh("sleep " + strconv.FormatFloat(delay, 'f', 3, 64))
	for look := 0; i < 2 && look < 200 && c.count(driftsSeen) == 0; look++ {
		c.sh("sleep 0.1") // the first points come when the agent has acted and was overruled
	}
	if i < 2 {
		c.acts = max(c.acts, c.g.seconds()-began)
	}
	c.sh(endAgent)
	c.drifts += c.count(driftsSeen)
	left := c.settings()
	if i%2 == 0 {
		c.sh(endWriter)
		left = c.settings()
		c.sh("homenode restore; e=$?; [ $e = 0 ] || [ $e = 4 ]")
	} else {
		c.sh("homenode-agent agent --config /etc/kill.yaml --rounds 2 2>&1")
		c.sh(endWriter)
	}
	if slices.ContainsFunc(left, func(s [2]string) bool { return !ofOther(s) }) {
		c.acted++
	}
	c.judge(i, left)
}

// judge compares what is set now with what the other process has set.
func (c *besideWriter) judge(i int, left [][2]string) {
	c.t.Helper()
	log := c.sh("cat /tmp/kill-writer.log")
	for n, s := range c.settings() {
		last := othersLast(log, s[0])
		switch {
		case !ofOther(s):
			c.t.Fatalf("kill point %d of seed %d: %s is %q, which is the agent's; before the restore %v; the other process:\n%s\nagent: %s", i, killSeed(), s[0], s[1], left, log, c.sh("cat /tmp/kill-agent.log"))
		case i%2 == 0 && ofOther(left[n]) && s != left[n]:
			c.t.Fatalf("kill point %d of seed %d: the restore changed the other's %v to %q\nagent: %s", i, killSeed(), left[n], s[1], c.sh("cat /tmp/kill-agent.log"))
		case last != "" && s[1] != last:
			c.lost++
		}
	}
	if e := strings.TrimSpace(c.sh("homenode restore >/dev/null 2>&1; echo $?")); e != "4" {
		c.t.Fatalf("kill point %d of seed %d: a second restore exits %s", i, killSeed(), e)
	}
}

// settings are the files and their values.
func (c *besideWriter) settings() (all [][2]string) {
	c.t.Helper()
	for line := range strings.Lines(c.sh(setNow, c.base)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		all = append(all, [2]string{name, value})
	}
	if len(all) != 4 {
		c.t.Fatalf("settings: %q", all)
	}
	return all
}

func (c *besideWriter) count(script string) int {
	c.t.Helper()
	n, err := strconv.Atoi(strings.TrimSpace(c.sh(script)))
	if err != nil {
		c.t.Fatal(err)
	}
	return n
}

func ofOther(s [2]string) bool {
	_, file, _ := strings.Cut(s[0], "/")
	return slices.Contains(othersSettings[file], s[1])
}

// othersLast is the last value that the other process gave a file; "": none.
func othersLast(log, name string) (value string) {
	for line := range strings.Lines(log) {
		if at, v, _ := strings.Cut(strings.TrimSpace(line), " "); at == name {
			value = v
		}
	}
	return value
}
