// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// hubPowers prints what the running hub may do, and where it listens.
const hubPowers = `pid=$(systemctl show -p MainPID --value homenode-hub)
ps -o user= -p $pid
grep -E '^(CapEff|CapPrm|CapBnd|NoNewPrivs|Seccomp):' /proc/$pid/status | tr -d '\t'
stat -c '%a %U %n' /var/lib/homenode-hub /var/lib/homenode-hub/authority
ss -Hltn | awk '{print $4}' | grep -E ':(7443|7480)$' | sort`

const wantPowers = `homenode-hub
CapPrm:0000000000000000
CapEff:0000000000000000
CapBnd:0000000000000000
NoNewPrivs:1
Seccomp:2
700 homenode-hub /var/lib/homenode-hub
700 homenode-hub /var/lib/homenode-hub/authority
127.0.0.1:7443
127.0.0.1:7480
`

const hubLog = "journalctl -u homenode-hub --no-pager -o cat"

// localAgent watches a unit and changes nothing.
const localAgent = `
period: 2s
calm_period: 2s
mode: observe
cgroups: ["/system.slice/lone.service"]
services:
  - {name: lone, match: "/system.slice/lone.service"}
`

// The hub's package under a running systemd: it starts as installed, as its own user without a
// capability, and listens on loopback. An agent of the same host is let in, and what it sees is
// in the answers. A killed hub is started again and loses nothing; one whose configuration is bad
// is not. Removed, it is gone, and the fleet's history stays.
func TestLabDebianHub(t *testing.T) {
	if testing.Short() || os.Getenv("HOMENODE_FLEET") != "1" {
		t.Skip("HOMENODE_FLEET is not 1: the hub's unit is tried by 'make test-full'")
	}
	o := labOptionsFor(t, "two", "v2")
	o.Guest = Debian
	g := boot(t, o)
	defer g.Close()
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the hub's log:\n%s", mustRun(t, g, "sh", "-c", hubLog+" | tail -n 40; systemctl status homenode-hub; homenode status; true"))
		}
	})
	mustRun(t, g, "sh", "-ec", keepProgram)
	putPackages(t, g)
	found, err := filepath.Glob(filepath.Join(root, "build/packages/homenode-hub_*_amd64.deb"))
	if err != nil || len(found) != 1 {
		t.Fatalf("want one package of the hub: run 'make packages' first: %q, %v", found, err)
	}
	data, err := os.ReadFile(found[0])
	if err != nil {
		t.Fatal(err)
	}
	putLarge(t, g, "/tmp/hub.deb", data)
	setClock(t, g)
	mustRun(t, g, "sh", "-ec", "rm /usr/bin/homenode; dpkg -i /tmp/1.deb /tmp/hub.deb 2>&1")
	hubIs(t, g, "active")
	if got := mustRun(t, g, "sh", "-c", hubPowers); got != wantPowers {
		t.Errorf("the running hub:\n%s\nwant:\n%s", got, wantPowers)
	}
	letIn(t, g)
	seen := hubHas(t, g, 0)
	hubKilled(t, g)
	hubHas(t, g, seen)
	hubOfBadConfig(t, g)
	mustRun(t, g, "sh", "-ec", "systemctl restart homenode-hub")
	hubHas(t, g, seen)
	mustRun(t, g, "sh", "-ec", "systemctl stop homenode; dpkg -P homenode-hub 2>&1")
	if left := mustRun(t, g, "sh", "-c", "ls -d /usr/bin/homenode-hub /etc/homenode/hub.yaml 2>/dev/null; systemctl list-unit-files --no-legend homenode-hub.service; ls /var/lib/homenode-hub; true"); left != "authority\nstatus.db\n" {
		t.Errorf("after the purge there are:\n%s", left)
	}
}

func hubIs(t *testing.T, g *Guest, state string) {
	t.Helper()
	waitFor(t, g, "the hub's unit is "+state, func() bool {
		return strings.TrimSpace(mustRun(t, g, "sh", "-c", "systemctl is-active homenode-hub || true")) == state
	})
}

// letIn enrols the guest itself, as hub.md says.
func letIn(t *testing.T, g *Guest) {
	t.Helper()
	var got struct {
		Token string `json:"token"`
	}
	out := mustRun(t, g, "homenode-hub", "enrol", "localhost", "-o", "json")
	if err := json.Unmarshal([]byte(out), &got); err != nil || got.Token == "" {
		t.Fatalf("enrol: %v\n%s", err, out)
	}
	said := mustRun(t, g, "homenode", "enrol", "--hub", "https://localhost:7443", "--token", got.Token)
	_, keys, found := strings.Cut(said, "\nhub:\n")
	if !found {
		t.Fatalf("enrol prints no configuration:\n%s", said)
	}
	mustPut(t, g, "/etc/homenode/agent.yaml", []byte(localAgent+"hub:\n"+keys))
	mustRun(t, g, "sh", "-ec", "systemd-run --quiet --unit lone sleep infinity; systemctl restart homenode")
}

// hubHas waits until the store has windows of more seconds than before, and returns how many.
func hubHas(t *testing.T, g *Guest, before float64) (seconds float64) {
	t.Helper()
	const query = `homenode-hub query sql "SELECT sum(length_s) AS s FROM windows WHERE service = 'lone'" -o json`
	waitFor(t, g, fmt.Sprintf("the hub has windows of more than %v s", before), func() bool {
		setClock(t, g)
		var got struct {
			Rows []map[string]any `json:"rows"`
		}
		out := mustRun(t, g, "sh", "-c", query+" || true")
		if json.Unmarshal([]byte(out), &got) == nil && len(got.Rows) == 1 {
			seconds, _ = got.Rows[0]["s"].(float64)
		}
		return seconds > before
	})
	return seconds
}

// hubKilled: systemd starts it again, and the agent sends what waited.
func hubKilled(t *testing.T, g *Guest) {
	t.Helper()
	const main = "systemctl show -p MainPID --value homenode-hub"
	first := mustRun(t, g, "sh", "-c", main)
	mustRun(t, g, "systemctl", "kill", "-s", "KILL", "homenode-hub")
	waitFor(t, g, "systemd starts the hub again", func() bool {
		now := strings.TrimSpace(mustRun(t, g, "sh", "-c", main))
		return now != "0" && now != strings.TrimSpace(first)
	})
	hubIs(t, g, "active")
	if s := hubStatus(t, g); strings.Contains(s, "dropped") {
		t.Errorf("batches were dropped: %s", s)
	}
}

// hubOfBadConfig: a bad configuration ends it with its reason, and systemd leaves it ended.
func hubOfBadConfig(t *testing.T, g *Guest) {
	t.Helper()
	mustRun(t, g, "sh", "-ec", "cp /etc/homenode/hub.yaml /tmp/kept; echo 'lisen: :7443' >> /etc/homenode/hub.yaml; systemctl restart homenode-hub || true")
	hubIs(t, g, "failed")
	mustRun(t, g, "sleep", "15")
	hubIs(t, g, "failed")
	if log := mustRun(t, g, "sh", "-c", hubLog+" | tail -n 5"); !strings.Contains(log, "lisen") {
		t.Errorf("the log does not name the bad key:\n%s", log)
	}
	mustRun(t, g, "sh", "-ec", "cp /tmp/kept /etc/homenode/hub.yaml; systemctl reset-failed homenode-hub")
}
