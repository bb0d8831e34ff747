// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"
	"path"
	"strconv"
	"strings"
	"unicode"

	"homenode/internal/set"
	"homenode/internal/snapshot"
)

// Commands are pasted into a shell, and names come from outside: a cgroup may be
// called "a; rm -rf /". Everything that is not a plain word is quoted.

const plainChars = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./:@%+=,-"

// quote makes one word of the shell from text. A character that does not print is
// written as bash's $'\x0a', so that a screen shows what the shell gets.
func quote(text string) string {
	if text != "" && strings.Trim(text, plainChars) == "" {
		return text
	}
	if !strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) || r == unicode.ReplacementChar }) {
		return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
	}
	var out strings.Builder
	out.WriteString("$'")
	for i := range len(text) {
		switch b := text[i]; {
		case b == '\'' || b == '\\':
			out.WriteString(`\` + string(b))
		case b < ' ' || b >= 0x7f:
			fmt.Fprintf(&out, `\x%02x`, b)
		default:
			out.WriteByte(b)
		}
	}
	return out.String() + "'"
}

// Quote makes one word of the shell from text, for other faces that print commands.
func Quote(text string) string { return quote(text) }

// remark is a comment after a command. Only plain characters survive.
func remark(text string) string {
	return "  # " + strings.Map(func(r rune) rune {
		if strings.ContainsRune(plainChars+" ", r) {
			return r
		}
		return '?'
	}, text)
}

// cgroupFile is a workload's file in a hierarchy. If the snapshot does not say where
// the hierarchy is mounted, systemd's mount point is taken.
func cgroupFile(h snapshot.Hierarchy, id, file string) string {
	mount := h.Path
	if mount == "" {
		mount = "/sys/fs/cgroup"
	}
	return quote(path.Join(mount, id, file))
}

// restartUnderNumactl is the command that starts a program another time, under a policy of numactl.
// The reader fills in its arguments: the owner of a process may write anything into its
// argv, and that must not become a command of root's.
func restartUnderNumactl(p snapshot.Process, policy, more string) string {
	text := fmt.Sprintf("in place of %s, PID %d", p.Name, p.PID)
	if p.Workload != "" {
		text += " of " + p.Workload
	}
	return "numactl " + policy + " -- COMMAND…" + remark(text+more)
}

// movePages moves the pages that processes have on some nodes.
func movePages(pids []int, from, to set.NodeSet, most int) []string {
	var out []string
	for _, pid := range pids {
		if len(out) == most {
			break
		}
		out = append(out, "migratepages "+strconv.Itoa(pid)+" "+from.String()+" "+to.String())
	}
	return out
}
