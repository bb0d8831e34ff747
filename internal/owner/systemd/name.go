// SPDX-License-Identifier: Apache-2.0

package systemd

import (
	"fmt"
	"path"
	"strings"

	"homenode/internal/journal"
)

// suffixes of units that have a cgroup.
var suffixes = []string{".service", ".scope", ".slice", ".socket", ".mount", ".swap"}

// UnitOf is the unit whose cgroup has this path: all its directories but the last are
// slices. Else the error says what it is instead.
//
//	/system.slice/ssh.service                          ssh.service
//	/system.slice/system-getty.slice/getty@tty1.service
//	/system.slice/_cpu.service                         cpu.service, escaped (cg_escape in systemd)
//	/system.slice/a.service/payload                    not a unit's: below a.service
//	/user.slice/user-1000.slice/user@1000.service/…    of a user's manager
func UnitOf(id string) (string, error) {
	refused := func(why string) (string, error) {
		return "", fmt.Errorf("act on %s: %w: %s", id, journal.ErrRefused, why)
	}
	if path.Clean("/"+id) != id || id == "/" {
		return refused("want the path of a unit's cgroup")
	}
	parts := strings.Split(id[1:], "/")
	for i, part := range parts {
		name := strings.TrimPrefix(part, "_")
		last := i == len(parts)-1
		switch {
		case last && name == "init.scope":
			return refused("it is PID 1 itself")
		case last && isUnit(name):
			return name, nil
		case last:
			return refused("its name is no unit's")
		case strings.HasSuffix(name, ".slice") && isUnit(name):
			continue
		case strings.HasPrefix(name, "user@") && strings.HasSuffix(name, ".service"):
			return refused("it belongs to a user's own systemd, " + name + ", which answers to that user")
		case isUnit(name):
			return refused("it is below unit " + name + ", which manages what is there itself (Delegate=)")
		}
		return refused("it is below " + part + ", which is no unit of systemd")
	}
	return refused("want the path of a unit's cgroup")
}

// isUnit says that a name can be a unit's: what is before the suffix is of the
// characters that systemd allows (VALID_CHARS in its basic/unit-name.c).
func isUnit(name string) bool {
	for _, suffix := range suffixes {
		stem, ok := strings.CutSuffix(name, suffix)
		if ok {
			return stem != "" && len(name) < 256 && strings.IndexFunc(stem, func(r rune) bool {
				return !(r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || strings.ContainsRune(`:-_.\@`, r))
			}) < 0
		}
	}
	return false
}

// kindOf is how D-Bus calls a unit's type: "Service".
func kindOf(unit string) string {
	suffix := strings.TrimPrefix(path.Ext(unit), ".")
	if suffix == "" {
		return ""
	}
	return strings.ToUpper(suffix[:1]) + suffix[1:]
}
