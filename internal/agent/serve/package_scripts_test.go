// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// upgradeOn runs a package's script after an upgrade on a host that is made of programs that
// only write down how they were called: checked and handed are the exit codes of 'homenode
// agent --check' and 'homenode handover'.
func upgradeOn(t *testing.T, script string, active bool, sameUnit bool, checked, handed int) (calls, said string) {
	t.Helper()
	dir := t.TempDir()
	for _, d := range []string{"bin", "run/systemd/system", "run/homenode"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	fake := fmt.Sprintf(`#!/bin/sh
echo "$(basename "$0") $*" >> %s/calls
case "$(basename "$0") $*" in
"systemctl --quiet is-active homenode.service") exit %d ;;
"homenode agent --check"*) exit %d ;;
"homenode handover"*) exit %d ;;
esac
`, dir, map[bool]int{true: 0, false: 3}[active], checked, handed)
	for _, name := range []string{"systemctl", "homenode", "deb-systemd-helper", "deb-systemd-invoke", "systemd-sysusers"} {
		write("bin/"+name, fake)
	}
	write("unit", "new")
	write("run/homenode/unit.before", map[bool]string{true: "new", false: "old"}[sameUnit])
	text, err := os.ReadFile("../../../deploy/packages/" + script)
	if err != nil {
		t.Fatal(err)
	}
	write("script", strings.NewReplacer("/usr/lib/systemd/system/homenode.service", dir+"/unit", "/run/", dir+"/run/").Replace(string(text)))
	args := []string{filepath.Join(dir, "script"), "2"}
	if strings.HasPrefix(script, "deb/") {
		args = []string{filepath.Join(dir, "script"), "configure", "1.0"}
	}
	cmd := exec.Command("sh", args...)
	cmd.Env = []string{"PATH=" + dir + "/bin:/usr/bin:/bin"}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v: %s", script, err, out)
	}
	if _, err := os.Stat(filepath.Join(dir, "run/homenode/unit.before")); err == nil {
		t.Errorf("%s: the unit before is left", script)
	}
	data, err := os.ReadFile(filepath.Join(dir, "calls"))
	if err != nil {
		t.Fatal(err)
	}
	return string(data), string(out)
}

// An upgrade hands over, and restarts the service only where a start can succeed and the
// agent does not take over.
func TestUpgradeScripts(t *testing.T) {
	for _, script := range []string{"deb/postinst", "rpm/post"} {
		for _, c := range []struct {
			name               string
			active, same       bool
			checked, handed    int
			handsOver, restart bool
			says               string
		}{
			{"it takes over", true, true, 0, 0, true, false, ""},
			{"no agent runs", false, true, 0, 0, false, false, ""},
			{"another unit", true, false, 0, 0, false, true, ""},
			{"it ended", true, true, 0, 1, true, true, ""},
			{"a call hangs", true, true, 0, 3, true, false, "handover' later"},
			{"a bad configuration", true, true, 2, 2, false, false, "'homenode agent --check' shows what is wrong in /etc/homenode/agent.yaml"},
			{"a bad configuration and another unit", true, false, 2, 2, false, false, "could not start again"},
		} {
			calls, said := upgradeOn(t, script, c.active, c.same, c.checked, c.handed)
			if got := strings.Contains(calls, "homenode handover"); got != c.handsOver {
				t.Errorf("%s, %s: handover asked for: %v; calls:\n%s", script, c.name, got, calls)
			}
			if got := strings.Contains(calls, "restart homenode.service"); got != c.restart {
				t.Errorf("%s, %s: restarted: %v; calls:\n%s", script, c.name, got, calls)
			}
			if !strings.Contains(said, c.says) || (c.says == "") != (said == "") {
				t.Errorf("%s, %s: it says %q", script, c.name, said)
			}
		}
	}
}
