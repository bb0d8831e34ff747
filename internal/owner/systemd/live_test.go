// SPDX-License-Identifier: Apache-2.0

package systemd

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"homenode/internal/action"
	"homenode/internal/journal"
	"homenode/internal/kernel"
	"homenode/internal/kernel/migrate"
	"homenode/internal/owner/cgroup"
	"homenode/internal/set"
	"homenode/internal/unit"
)

// liveSystemd is for a host whose units may be changed: the lab's Debian guest, two
// nodes (internal/lab/debian_systemd_test.go).
func liveSystemd(t *testing.T) {
	t.Helper()
	if os.Getenv("HOMENODE_SYSTEMD") != "1" {
		t.Skip("HOMENODE_SYSTEMD is not 1: it changes units of the host that it runs on")
	}
}

func sh(t *testing.T, script string) string {
	t.Helper()
	var out bytes.Buffer
	cmd := exec.Command("sh", "-c", script)
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s: %v\n%s", script, err, out.String())
	}
	return out.String()
}

func live(t *testing.T, cfg Config) *Applier {
	t.Helper()
	mover, err := migrate.NewMover(kernel.Live(), migrate.Config{Shared: true})
	if err != nil {
		t.Fatal(err)
	}
	pages, err := cgroup.New(kernel.Live(), cgroup.Config{Mover: mover})
	if err != nil {
		t.Fatal(err)
	}
	cfg.Pages, cfg.Limit = pages, time.Minute // a guest on a busy host is slow
	a, err := New(kernel.Live(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// liveUnits are of every kind with its own place for the drop-in, or with a difficult
// name.
const liveUnits = `
cd /etc/systemd/system
printf '[Service]\nExecStart=/bin/sleep infinity\n' > plain.service
printf '[Service]\nExecStart=/bin/sleep infinity\nAllowedCPUs=0-2\n' > kept.service
printf '[Service]\nExecStart=/bin/sleep infinity\n' > 'a-b@.service'
printf '[Service]\nExecStart=/bin/sleep infinity\n' > 'cpu.service'
systemctl daemon-reload
systemctl start plain kept 'a-b@c\x2fd' cpu.service
systemd-run --quiet --unit brief sleep infinity
`

var liveNames = []string{"plain.service", "kept.service", `a-b@c\x2fd.service`, "cpu.service", "brief.service"}

// show prints the files in which systemd stores properties.
func show(t *testing.T) string {
	script := "find /run/systemd/system.control /run/systemd/transient /etc/systemd/system.control -name '*.conf' 2>/dev/null | sort\n"
	for _, name := range liveNames {
		script += fmt.Sprintf("systemctl cat '%s'\n", name)
	}
	return sh(t, script)
}

func idOf(t *testing.T, name string) string {
	return strings.TrimSpace(sh(t, "systemctl show -P ControlGroup '"+name+"'"))
}

func openLive(t *testing.T) *journal.Journal {
	t.Helper()
	j, err := journal.Open(filepath.Join(t.TempDir(), "journal"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { j.Close() })
	return j
}

func TestLiveUnits(t *testing.T) {
	liveSystemd(t)
	sh(t, liveUnits)
	defer sh(t, `systemctl stop plain kept 'a-b@c\x2fd' cpu.service brief; cd /etc/systemd/system; rm plain.service kept.service a-b@.service cpu.service; systemctl daemon-reload`)
	before := settings(t)
	for _, socket := range []string{private, systemBus} {
		a, j := live(t, Config{}), openLive(t)
		a.bus = &liveBus{sockets: []string{socket}}
		if socket == systemBus {
			a.bus = &liveBus{sockets: []string{"/run/none", systemBus}}
		}
		for i, name := range liveNames {
			if socket == systemBus && i > 1 {
				break // the rest is as on the other socket
			}
			for _, step := range []action.Step{
				{Kind: action.SetCPUs, Workload: idOf(t, name), CPUs: set.FromCPUs(2)},
				{Kind: action.SetMems, Workload: idOf(t, name), Nodes: set.FromNodes(1)},
			} {
				if o := j.Wrap(a).Apply(t.Context(), step); o.Status != action.Done {
					t.Fatalf("%s: %s: %s", name, o.Status, o.Detail)
				}
			}
			got := sh(t, "cd /sys/fs/cgroup'"+idOf(t, name)+"' && cat cpuset.cpus cpuset.mems")
			if got != "2\n1\n" || !j.Ours(idOf(t, name), "cpuset.cpus", "2") {
				t.Errorf("%s: its cgroup has %q", name, got)
			}
		}
		during, files := settings(t), show(t)
		sh(t, "systemctl daemon-reload")
		if got := settings(t); got != during {
			t.Errorf("after daemon-reload:\n%s\nbefore:\n%s", got, during)
		}
		sh(t, "systemctl daemon-reexec") // which ends our connection
		got, err := j.Restore(t.Context(), a)
		t.Logf("%s: %v, %v", socket, got, err)
		after := show(t)
		if socket == private {
			t.Logf("bound:\n%s\nput back:\n%s", files, after)
		}
		if got := settings(t); got != before {
			t.Errorf("put back:\n%s\nbefore:\n%s", got, before)
		}
		if reload := sh(t, "systemctl show -P NeedDaemonReload plain kept brief | sort -u"); strings.TrimSpace(reload) != "no" {
			t.Errorf("wants a reload: %s", reload)
		}
		sh(t, "systemctl daemon-reload")
		if got := settings(t); got != before {
			t.Errorf("put back, and reloaded:\n%s\nbefore:\n%s", got, before)
		}
		sh(t, "rm -rf /run/systemd/system.control/* /run/systemd/transient/*.d; systemctl daemon-reload")
	}
}

// settings are the values that are set and those in force. Without the controller systemd
// reports nothing in force: that means everything.
func settings(t *testing.T) string {
	script := ""
	for _, name := range liveNames {
		script += fmt.Sprintf("systemctl show -p Id,AllowedCPUs,AllowedMemoryNodes,EffectiveCPUs,EffectiveMemoryNodes '%s'\n", name)
	}
	return strings.NewReplacer("EffectiveCPUs=\n", "EffectiveCPUs=0-3\n", "EffectiveMemoryNodes=\n", "EffectiveMemoryNodes=0-1\n").Replace(sh(t, script))
}

// Others act after us: an admin through systemctl, another process by a write, the unit
// by its own end.
func TestLiveDrift(t *testing.T) {
	liveSystemd(t)
	sh(t, liveUnits)
	defer sh(t, `systemctl stop plain kept 'a-b@c\x2fd' cpu.service brief; cd /etc/systemd/system; rm -f plain.service kept.service a-b@.service cpu.service; rm -rf /run/systemd/system.control/*; systemctl daemon-reload`)
	a, j := live(t, Config{}), openLive(t)
	cpus := func(name string, ids ...int) action.Outcome {
		return j.Wrap(a).Apply(t.Context(), action.Step{Kind: action.SetCPUs, Workload: "/system.slice/" + name, CPUs: set.FromCPUs(ids...)})
	}
	for _, name := range []string{"plain.service", "kept.service", "brief.service"} {
		if o := cpus(name, 1); o.Status != action.Done {
			t.Fatalf("%+v", o)
		}
	}
	sh(t, "systemctl set-property --runtime plain.service AllowedCPUs=2-3; echo 3 > /sys/fs/cgroup/system.slice/kept.service/cpuset.cpus")
	for name, want := range map[string]string{"plain.service": `it is "2-3", we left "1"`, "kept.service": `its cgroup is "3"`} {
		if o := cpus(name, 0); o.Status != action.Drifted || !strings.Contains(o.Detail, want) {
			t.Errorf("%s: %s: %s", name, o.Status, o.Detail)
		}
	}
	sh(t, "systemctl stop brief.service; systemctl restart kept.service")
	if o := cpus("brief.service", 0); o.Status != action.Gone {
		t.Errorf("%s: %s", o.Status, o.Detail)
	}
	got, err := j.Restore(t.Context(), a)
	t.Logf("%v, %v", got, err)
	left := sh(t, "systemctl show -P AllowedCPUs plain.service kept.service | grep .")
	if err != nil || left != "2-3\n0-2\n" {
		t.Errorf("%v; %v; plain and kept have %q", got, err, left)
	}
}

// TestLiveAsk only sets and unsets: TestLivePowers runs it as another user.
func TestLiveAsk(t *testing.T) {
	liveSystemd(t)
	b := newLiveBus(kernel.Live().Root())
	err := b.Set(t.Context(), "plain.service", CPUs, []byte{2})
	fmt.Println("asked:", explain("set", "plain.service", err))
	if err == nil {
		fmt.Println("unset:", b.Set(t.Context(), "plain.service", CPUs, []byte{}))
	}
}

// What one needs to be: root, but none of its capabilities.
func TestLivePowers(t *testing.T) {
	liveSystemd(t)
	sh(t, liveUnits)
	defer sh(t, `systemctl stop plain kept 'a-b@c\x2fd' cpu.service brief; cd /etc/systemd/system; rm -f plain.service kept.service a-b@.service cpu.service; rm -rf /run/systemd/system.control/*; systemctl daemon-reload`)
	for _, c := range []struct{ as, want string }{
		{"--bounding-set=-all --inh-caps=-all", "asked: <nil>\nunset: <nil>"},
		{"--reuid=65534 --clear-groups", "not permitted"},
	} {
		if got := sh(t, "cd /; setpriv "+c.as+" "+os.Args[0]+" -test.run TestLiveAsk"); !strings.Contains(got, c.want) {
			t.Errorf("%s: %s", c.as, got)
		} else {
			t.Logf("%s: %s", c.as, got)
		}
	}
}

// heavy is little: a page takes the guest milliseconds where its host is busy, and all of
// them are moved inside PID 1 once.
const heavy = 32 * unit.MiB

// startHeavy starts a unit with its memory on node 1, and then without a binding.
func startHeavy(t *testing.T) (id string) {
	sh(t, fmt.Sprintf(`rm -f /run/heavy.ready
systemd-run --quiet --unit heavy -p AllowedMemoryNodes=1 homenode-load chase --threads 1 --ws 4MiB --extra %dMiB --thp off --ready /run/heavy.ready
while ! test -e /run/heavy.ready; do sleep 0.1; done
systemctl set-property --runtime heavy.service AllowedMemoryNodes=0-1
systemctl set-property --runtime heavy.service AllowedMemoryNodes=`, int64(heavy/unit.MiB)))
	return "/system.slice/heavy.service"
}

func migrated(t *testing.T) int {
	n, err := strconv.Atoi(strings.TrimSpace(sh(t, "sed -n 's/^pgmigrate_success //p' /proc/vmstat")))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// pings asks PID 1 whether it is there all the time, on a connection of its own, and
// tells the longest that an answer took.
func pings(t *testing.T, during func()) (longest time.Duration) {
	var end atomic.Bool
	done := make(chan time.Duration)
	go func() {
		var most time.Duration
		b := newLiveBus(kernel.Live().Root())
		for !end.Load() {
			began := time.Now()
			if err := b.call(context.Background(), object, "org.freedesktop.DBus.Peer.Ping", nil); err != nil {
				t.Error(err)
				break
			}
			most = max(most, time.Since(began))
			time.Sleep(2 * time.Millisecond)
		}
		done <- most
	}()
	time.Sleep(200 * time.Millisecond)
	during()
	end.Store(true)
	return <-done
}

// PID 1 waits while the kernel moves what is elsewhere. Set at once, that is all there
// is; after our moves, next to nothing.
func TestLiveStall(t *testing.T) {
	liveSystemd(t)
	all := int(heavy / 4096)
	home := set.FromNodes(0)
	startHeavy(t)
	a := live(t, Config{MostElsewhere: heavy / 2})
	setAtOnce := func() { // without a limit: it may take PID 1 longer than ours
		if err := a.bus.Set(t.Context(), "heavy.service", Mems, []byte{1}); err != nil {
			t.Error(err)
		}
		if _, err := a.bus.Unit(t.Context(), "heavy.service"); err != nil {
			t.Error(err)
		}
	}
	before := migrated(t)
	stall := pings(t, setAtOnce)
	atOnce := migrated(t) - before
	t.Logf("at once: %d pages moved inside, PID 1 silent for %v", atOnce, stall)
	sh(t, "systemctl stop heavy.service")

	id := startHeavy(t)
	j := openLive(t)
	mems := action.Step{Kind: action.SetMems, Workload: id, Nodes: home}
	if o := j.Wrap(a).Apply(t.Context(), mems); o.Status != action.Refused {
		t.Errorf("with all of it elsewhere: %s: %s", o.Status, o.Detail)
	}
	steps := []action.Step{{Kind: action.SetCPUs, Workload: id, CPUs: set.FromCPUs(0, 1)}, {Kind: action.MovePages, Workload: id, Nodes: home, From: set.FromNodes(1), Budget: unit.GiB}}
	for _, step := range steps {
		for range 3 { // what is left then cannot be moved by us
			o := j.Wrap(a).Apply(t.Context(), step)
			t.Logf("%s: %s: moved %v, failed %v: %s", step.Kind, o.Status, o.Moved, o.Failed, o.Detail)
			if o.Status != action.Done && o.Status != action.InProgress {
				t.Fatal("not taken")
			}
			if o.Status == action.Done {
				break
			}
		}
	}
	before = migrated(t)
	ourStall := pings(t, func() {
		if o := j.Wrap(a).Apply(t.Context(), mems); o.Status != action.Done {
			t.Fatalf("%s: %s", o.Status, o.Detail)
		}
	})
	ours := migrated(t) - before
	t.Logf("ours: %d pages moved inside, PID 1 silent for %v", ours, ourStall)
	if atOnce < all*9/10 || ours > all/100 {
		t.Errorf("at once %d pages, ours %d, of %d", atOnce, ours, all)
	}
	if got, err := j.Restore(t.Context(), a); err != nil || len(got) != 2 {
		t.Errorf("%v, %v", got, err)
	}
	t.Log(sh(t, "systemctl stop heavy.service; ls -R /run/systemd/system.control 2>/dev/null || true"))
}
