// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"strconv"
	"strings"
	"testing"
)

const (
	// tooLittle is less than the agent has in use once it has read a few windows, so that
	// the kernel kills it each time; `homenode restore` has room.
	tooLittle = "9M"
	// enoughKills of the agent: more than systemd's own limit of starts (five in ten
	// seconds) would allow, if a start took no time.
	enoughKills = 8
)

// showHungry prints the number of starts, the state, and the result of the last end.
const showHungry = "for p in NRestarts ActiveState Result; do systemctl show -p $p --value homenode; done"

// The unit of deploy/ with so little memory that the kernel kills the agent soon after each
// start. Each time ExecStopPost puts back what was bound, within the same limit; no start is
// the last one, and once there is memory again the agent binds as before.
func TestLabDebianOutOfMemory(t *testing.T) {
	t.Parallel()
	g := debianGuest(t)
	toServe(t, g)
	defer mustRun(t, g, "homenode-load", "control", "off")
	defer mustRun(t, g, "sh", "-c", endServed+"; systemctl revert homenode; systemctl daemon-reload; true")
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the unit's log:\n%s", mustRun(t, g, "sh", "-c", "journalctl -u homenode --no-pager -o cat | tail -n 80; systemctl status homenode; true"))
		}
	})
	mustRun(t, g, "sh", "-ec", startServed+"systemd-sysusers; sysctl -q -p /etc/sysctl.d/homenode.conf; systemctl daemon-reload")
	before := mustRun(t, g, "sh", "-c", showServed) + "0-3\n0-1\n"
	mustRun(t, g, "systemctl", "start", "homenode")
	mustRun(t, g, "sh", "-ec", startMade)
	servedBound(t, g)
	for kills := 0; kills < enoughKills; kills++ {
		was := hungry(t, g)
		mustRun(t, g, "systemctl", "set-property", "--runtime", "homenode", "MemoryMax="+tooLittle)
		waitFor(t, g, "the kernel kills it, and all is put back", func() bool {
			now := hungry(t, g)
			return now.ended() && (now.restarts > was.restarts || now.state == "activating") && mustRun(t, g, "sh", "-c", showServed) == before
		})
	}
	// systemd counts a start when it begins, RestartSec after the last kill.
	waitFor(t, g, "it is started again after the last kill", func() bool { return hungry(t, g).restarts >= enoughKills })
	mustRun(t, g, "systemctl", "set-property", "--runtime", "homenode", "MemoryMax=256M")
	servedBound(t, g)
	mustRun(t, g, "systemctl", "stop", "homenode")
	if after := mustRun(t, g, "sh", "-c", showServed); after != before {
		t.Errorf("after its end:\n%s\nbefore:\n%s", after, before)
	}
}

type hungryUnit struct {
	restarts      int
	state, result string
}

func (u hungryUnit) ended() bool { return u.state != "active" && u.state != "deactivating" }

func hungry(t *testing.T, g *Guest) hungryUnit {
	t.Helper()
	all := strings.Fields(mustRun(t, g, "sh", "-c", showHungry))
	if len(all) != 3 {
		t.Fatalf("%q", all)
	}
	n, err := strconv.Atoi(all[0])
	if err != nil {
		t.Fatal(err)
	}
	return hungryUnit{n, all[1], all[2]}
}
