// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"slices"
	"strings"
	"testing"

	"homenode/internal/set"
	"homenode/internal/snapshot"
	"homenode/internal/window"
)

func TestOwnersCommands(t *testing.T) {
	l := view{healthy(2), DefaultConfig()}
	id := strings.Repeat("0123456789abcdef", 4)
	w := window.Workload{ID: "/system.slice/docker-" + id + ".scope", Owner: "docker"}
	if got := l.bind(w, set.FromCPUs(0, 1), set.FromNodes(0)); !slices.Equal(got, []string{"docker update --cpuset-cpus 0-1 --cpuset-mems 0 0123456789ab"}) {
		t.Error(got)
	}
	if got := l.limit(w, w.ID, 5*gib); !slices.Equal(got, []string{"docker update --memory 5368709120 0123456789ab"}) {
		t.Error(got)
	}
}

// Only a unit that the system's manager made is addressed by its name; below a service
// or a scope the names may come from any user.
func TestSystemdUnit(t *testing.T) {
	for id, want := range map[string]string{
		"/system.slice/db.service":                                         "db.service",
		"/system.slice/system-getty.slice/getty@tty1.service":              "getty@tty1.service",
		"/a.slice/a-b.slice":                                               "a-b.slice",
		"/init.scope":                                                      "init.scope",
		"/user.slice/user-1000.slice/session-2.scope":                      "session-2.scope",
		"/system.slice/-x.service":                                         "-x.service", // behind --
		"/system.slice/foo.service/worker":                                 "",
		"/system.slice/foo.service/bar.service":                            "",
		"/user.slice/user-1000.slice/user@1000.service/app.slice/a.scope":  "",
		"/user.slice/user-1000.slice/user@1000.service/--host=r@e.service": "",
		"/system.slice/--host=root@evil.service":                           "", // = is in no unit's name
		"/demo/db.service":                                                 "",
		"/system.slice/worker":                                             "",
		"/system.slice/.service":                                           "",
		"/":                                                                "",
		"":                                                                 "",
	} {
		name, ok := systemdUnit(id)
		if name != want || ok != (want != "") {
			t.Errorf("%s: %q %v, want %q", id, name, ok, want)
		}
		got := view{snapshot.Snapshot{}, DefaultConfig()}.bind(window.Workload{ID: id, Owner: "systemd"}, set.FromCPUs(0), set.FromNodes(0))
		if systemctl := strings.Contains(strings.Join(got, ""), "systemctl"); len(got) != 1 || systemctl != ok || systemctl && !strings.Contains(got[0], "--runtime -- "+quote(name)+" ") {
			t.Errorf("%s: %q", id, got)
		}
	}
}
