// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// putPackages puts the package that 'make packages' made into the guest, /tmp/1.deb, and makes
// the same one with a higher version of it there, /tmp/2.deb.
func putPackages(t *testing.T, g *Guest) {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(root, "build/packages/homenode_*_amd64.deb"))
	if err != nil || len(found) != 1 {
		t.Fatalf("want one package: run 'make packages' first: %q, %v", found, err)
	}
	data, err := os.ReadFile(found[0])
	if err != nil {
		t.Fatal(err)
	}
	putLarge(t, g, "/tmp/1.deb", data)
	mustRun(t, g, "sh", "-ec", `cd /tmp; dpkg-deb -R 1.deb tree; sed -i 's/^Version: .*/&+test/' tree/DEBIAN/control
dpkg-deb -Znone --root-owner-group -b tree 2.deb; rm -r tree`)
}

// everyFile lists what an installation could leave: files, groups, users, units that are known,
// cgroups and their settings. Logs of dpkg and of the journal, and dpkg's own records, are
// not homenode's.
const everyFile = `
find / -xdev \( -path /proc -o -path /sys -o -path /tmp -o -path /var/lib/dpkg -o -path /var/log -o -path /var/cache \) -prune -o -print | sort
find /run /etc/systemd -name '*homenode*' | grep -v -e homenode-guest -e homenode-shell | sort
getent group homenode; getent passwd homenode
systemctl list-unit-files --no-legend --no-pager 'homenode.service'
find /var/log /var/lib -name '*homenode*' -not -path '/var/lib/dpkg/*'
find /sys/fs/cgroup -name '*homenode*' | grep -v -e homenode-guest -e homenode-shell
true`

// keepProgram keeps the guest's own program, which a package replaces and its removal removes.
const keepProgram = `cp -p /usr/bin/homenode /usr/bin/.kept`

const backToOwnProgram = `systemctl stop homenode 2>/dev/null; dpkg -P homenode >/dev/null 2>&1; cp -p /usr/bin/.kept /usr/bin/homenode; rm -f /usr/bin/.kept /tmp/1.deb /tmp/2.deb /tmp/watched; true`

// watchCpuset writes a line to /tmp/watched whenever the bound unit's cpuset is another one.
const watchCpuset = `
(cd /sys/fs/cgroup/system.slice/lone.service; was=; while [ ! -e /tmp/watch.end ]; do
now="$(cat cpuset.cpus cpuset.mems | tr '\n' ' ')"; [ "$now" = "$was" ] || echo "$now" >> /tmp/watched; was=$now; sleep 0.02; done) </dev/null >/dev/null 2>&1 &
n=0; until [ -s /tmp/watched ]; do n=$((n + 1)); [ $n -lt 100 ]; sleep 0.1; done`

const mainPID = `systemctl show -p MainPID --value homenode`

// modelled runs something with the model on. Without it nothing is counted and a host is ten
// times as fast, so dpkg works without.
func modelled(t *testing.T, g *Guest, what func()) {
	t.Helper()
	mustRun(t, g, "homenode-load", "control", "on")
	defer mustRun(t, g, "homenode-load", "control", "off")
	what()
}

// packageGuest is a guest that has the packages and no homenode.
func packageGuest(t *testing.T) *Guest {
	t.Helper()
	g := debianGuest(t)
	mustRun(t, g, "sh", "-ec", keepProgram)
	t.Cleanup(func() { mustRun(t, g, "sh", "-c", backToOwnProgram) })
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the agent's log:\n%s", mustRun(t, g, "sh", "-c", servedLog+" | tail -n 60; systemctl status homenode; true"))
		}
	})
	return g
}

// The Debian package: installed, it runs under systemd and binds nothing. Configured, it binds.
// An upgrade keeps what is bound, in the same process, and one with a bad configuration leaves
// the agent alone. A kill after it puts everything back. Removed, nothing is set any more;
// purged, nothing is left.
func TestLabDebianPackage(t *testing.T) {
	t.Parallel()
	g := packageGuest(t)
	defer mustRun(t, g, "sh", "-c", "systemctl stop lone; rm -rf /run/served; true")
	putPackages(t, g)
	modelled(t, g, func() { mustRun(t, g, "sh", "-ec", startServed+"rm /usr/bin/homenode") })
	mustRun(t, g, "systemctl", "daemon-reload") // as dpkg does: what is shown before and after is alike
	files := mustRun(t, g, "sh", "-c", everyFile)
	free := mustRun(t, g, "sh", "-c", showServed)

	mustRun(t, g, "sh", "-ec", "dpkg -i /tmp/1.deb 2>&1")
	if now := mustRun(t, g, "sh", "-c", "systemctl is-active homenode; systemctl is-enabled homenode"); now != "active\nenabled\n" {
		t.Errorf("after its installation it is %q", now)
	}
	countAsDocumented(t, g)
	modelled(t, g, func() { packageBinds(t, g) })
	packageUpgrades(t, g)
	packageStays(t, g)
	servedKilledOnce(t, g)

	mustRun(t, g, "sh", "-c", uncount)
	mustRun(t, g, "sh", "-ec", "dpkg -r homenode 2>&1")
	if now := mustRun(t, g, "sh", "-c", showServed); now != free {
		t.Errorf("removed:\n%s\nbefore:\n%s", now, free)
	}
	if left := mustRun(t, g, "sh", "-c", "ls /etc/homenode; ls /usr/bin/homenode 2>/dev/null; systemctl is-active homenode; true"); left != "agent.yaml\ninactive\n" {
		t.Errorf("removed, and left: %q", left)
	}
	mustRun(t, g, "sh", "-ec", "dpkg -P homenode 2>&1")
	if now := mustRun(t, g, "sh", "-c", everyFile); now != files {
		t.Errorf("purged, and these lines are new or gone:\n%s", difference(files, now))
	}
}

// countAsDocumented does what docs/install.md has for counters on Debian. Without it the agent
// has estimates, and binds on those after 36 windows only. The guest's dpkg leaves out
// /usr/share/doc, where the package has the file.
func countAsDocumented(t *testing.T, g *Guest) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(root, "deploy/sysctl.d/homenode.conf"))
	if err != nil {
		t.Fatal(err)
	}
	mustPut(t, g, "/etc/sysctl.d/homenode.conf", data)
	mustRun(t, g, "sysctl", "-q", "-p", "/etc/sysctl.d/homenode.conf")
}

const uncount = `rm -f /etc/sysctl.d/homenode.conf; sysctl -q kernel.perf_event_paranoid=3`

// packagedAgent binds the unit of startServed.
var packagedAgent = strings.ReplaceAll(serviceAgent, `, "/made/*"`, "")

// packageBinds configures the installed agent, and waits until the unit is bound.
func packageBinds(t *testing.T, g *Guest) {
	t.Helper()
	mustPut(t, g, "/etc/homenode/agent.yaml", []byte(packagedAgent))
	mustRun(t, g, "systemctl", "restart", "homenode")
	waitFor(t, g, "the unit is bound", func() bool {
		return strings.HasPrefix(mustRun(t, g, "sh", "-c", showServed), lonelyBound) &&
			strings.Contains(mustRun(t, g, "sh", "-c", "homenode status; true"), "bound")
	})
}

// packageUpgrades installs the second package while the unit is bound, and watches its cpuset.
func packageUpgrades(t *testing.T, g *Guest) {
	t.Helper()
	pid := mustRun(t, g, "sh", "-c", mainPID)
	mustRun(t, g, "sh", "-ec", "rm -f /tmp/watched /tmp/watch.end\n"+watchCpuset)
	said := mustRun(t, g, "sh", "-ec", "dpkg -i --force-confold /tmp/2.deb 2>&1")
	if now := mustRun(t, g, "sh", "-c", mainPID); now != pid {
		t.Errorf("the upgrade started another process: %s, not %s; it said:\n%s", now, pid, said)
	}
	if link := mustRun(t, g, "sh", "-c", "readlink /proc/$("+mainPID+")/exe; dpkg-query -W -f '${Version}' homenode"); !strings.HasPrefix(link, "/usr/bin/homenode\n") || !strings.HasSuffix(link, "+test") {
		t.Errorf("after the upgrade it runs %s", link)
	}
	modelled(t, g, func() { mustRun(t, g, "sleep", "6") })
	mustRun(t, g, "sh", "-c", "touch /tmp/watch.end; sleep 0.5; rm -f /tmp/watch.end")
	if seen := mustRun(t, g, "cat", "/tmp/watched"); strings.Count(seen, "\n") != 1 {
		t.Errorf("the cpuset of the bound unit was, one after the other:\n%s", seen)
	}
	log := mustRun(t, g, "sh", "-c", servedLog)
	if _, after, ok := strings.Cut(log, "taken over from the program before; bindings stay"); !ok || strings.Contains(after, "step=set-") {
		t.Errorf("the new program did not take over, or bound again; its log:\n%s", log)
	}
}

// packageStays runs the package's scripts of an upgrade beside a configuration with which no
// agent would start.
func packageStays(t *testing.T, g *Guest) {
	t.Helper()
	pid := mustRun(t, g, "sh", "-c", mainPID)
	mustPut(t, g, "/etc/homenode/agent.yaml", []byte("period: never\n"))
	said := mustRun(t, g, "sh", "-ec", "cd /var/lib/dpkg/info; export DPKG_MAINTSCRIPT_PACKAGE=homenode; ./homenode.preinst upgrade 1; ./homenode.postinst configure 1 2>&1")
	if now := mustRun(t, g, "sh", "-c", mainPID); now != pid || !strings.Contains(said, "continues as the old program") {
		t.Errorf("an upgrade with a bad configuration: process %s, not %s; it said: %s", now, pid, said)
	}
	if now := mustRun(t, g, "sh", "-c", showServed); !strings.HasPrefix(now, lonelyBound) {
		t.Errorf("an upgrade with a bad configuration: the unit is not bound any more: %s", now)
	}
	mustPut(t, g, "/etc/homenode/agent.yaml", []byte(packagedAgent))
}

// servedKilledOnce: what is set before an upgrade is still on record after it.
func servedKilledOnce(t *testing.T, g *Guest) {
	t.Helper()
	mustRun(t, g, "systemctl", "kill", "-s", "KILL", "homenode")
	waitFor(t, g, "the restore after a kill", func() bool {
		_, after, _ := strings.Cut(mustRun(t, g, "sh", "-c", servedLog), "code=killed, status=9/KILL")
		return strings.Contains(after, "unit lone.service AllowedCPUs: put-back: ")
	})
}

// difference lists the lines that only one of two texts has.
func difference(a, b string) string {
	var all []string
	for _, side := range []struct{ sign, of, in string }{{"- ", a, b}, {"+ ", b, a}} {
		lines := map[string]bool{}
		for line := range strings.Lines(side.in) {
			lines[line] = true
		}
		for line := range strings.Lines(side.of) {
			if !lines[line] {
				all = append(all, side.sign+strings.TrimSuffix(line, "\n"))
			}
		}
	}
	return strings.Join(all, "\n")
}

// firstDay are the commands of the README's block for a package.
func firstDay(t *testing.T) (commands []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, text2, found := strings.Cut(string(text), "## From a package")
	_, text2, found2 := strings.Cut(text2, "```sh\n")
	if !found || !found2 {
		t.Fatal("README.md has no block of commands for a package")
	}
	block, _, _ := strings.Cut(text2, "```")
	for line := range strings.Lines(block) {
		line, _, _ = strings.Cut(line, " #")
		commands = append(commands, strings.TrimSpace(line))
	}
	return commands
}

// mostCommands and mostSeconds of the guest's clock take a new user from a fresh Debian to a
// dry run that is watched.
const (
	mostCommands = 5
	mostSeconds  = 120
)

// The README's commands for a package, as they stand there, in a Debian without homenode. The
// last one is typed in another terminal, so it is repeated until the dry run has a round.
func TestLabDebianFirstDay(t *testing.T) {
	t.Parallel()
	commands := firstDay(t)
	if len(commands) == 0 || len(commands) > mostCommands {
		t.Fatalf("%d commands: %q", len(commands), commands)
	}
	g := packageGuest(t)
	putPackages(t, g)
	mustRun(t, g, "sh", "-ec", "rm -f /usr/bin/homenode; rm -rf /tmp/day; mkdir /tmp/day; cp /tmp/1.deb /tmp/day/homenode_1_amd64.deb")
	defer mustRun(t, g, "sh", "-c", "kill $(cat /tmp/day/pid) 2>/dev/null; rm -rf /tmp/day")
	start := g.seconds()
	var said string
	for _, command := range commands {
		switch {
		case strings.Contains(command, "--dry-run"):
			mustRun(t, g, "sh", "-ec", "cd /tmp/day; ("+command+" </dev/null >log 2>&1) & echo $! > /tmp/day/pid")
		case strings.Contains(command, "/dry-run"):
			waitFor(t, g, command, func() bool {
				said = mustRun(t, g, "sh", "-c", command+" 2>&1; echo $?")
				return strings.HasSuffix(said, "\n0\n")
			})
		default:
			t.Logf("%s:\n%s", command, mustRun(t, g, "sh", "-ec", "cd /tmp/day; "+command+" 2>&1"))
		}
	}
	took := g.seconds() - start
	t.Logf("%d commands, %.1f s of the guest's clock; the last one says\n%s", len(commands), took, said)
	if !strings.Contains(said, "dry run: it changes nothing") || !strings.Contains(said, "/system.slice/containerd.service") {
		t.Errorf("it is no dry run, or watches nothing:\n%s", said)
	}
	if took > mostSeconds {
		t.Errorf("it took %.0f s of the guest's clock, want at most %d", took, mostSeconds)
	}
}
