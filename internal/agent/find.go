// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"cmp"
	"errors"
	"os"
	"path/filepath"
	"strconv"
)

// UserStateDir is the state folder of a user other than root: only root may write
// DefaultStateDir.
func UserStateDir() string {
	base := cmp.Or(os.Getenv("XDG_STATE_HOME"), filepath.Join(os.Getenv("HOME"), ".local/state"))
	if !filepath.IsAbs(base) {
		return ""
	}
	return filepath.Join(base, "homenode")
}

// stateDirs are the folders in which an agent, or a dry run, may have its status: the
// agent's before those of dry runs.
func stateDirs(dir string) []string {
	dirs := []string{dir}
	own := ""
	if dir == DefaultStateDir && os.Geteuid() != 0 {
		own = UserStateDir()
	}
	if own != "" {
		dirs = append(dirs, own)
	}
	for _, d := range dirs[:len(dirs):len(dirs)] {
		dirs = append(dirs, filepath.Join(d, dryRunDir))
	}
	return dirs
}

// FindStatus reads the status of what runs with this state folder: the agent, else a dry
// run beside it. If nothing runs, it is what a killed one left.
func FindStatus(dir string) (Status, error) {
	var left *Status
	var first, denied error
	for _, d := range stateDirs(dir) {
		s, err := ReadStatus(d)
		switch {
		case err == nil && alive(s.PID):
			return s, nil
		case err == nil && left == nil:
			left = &s
		case err != nil && first == nil:
			first = err
		}
		if err != nil && !errors.Is(err, ErrNoStatus) && denied == nil {
			denied = err
		}
	}
	if left != nil {
		return *left, nil
	}
	return Status{}, cmp.Or(denied, first)
}

// FindSocket is the socket of the agent with this state folder, else of a dry run beside
// it, else the agent's, where there should be one.
func FindSocket(dir string) string {
	for _, d := range stateDirs(dir) {
		socket := filepath.Join(d, socketName)
		if st, err := os.Stat(socket); err == nil && st.Mode()&os.ModeSocket != 0 {
			return socket
		}
	}
	return filepath.Join(dir, socketName)
}

// alive says whether a process exists.
func alive(pid int) bool {
	_, err := os.Stat(filepath.Join("/proc", strconv.Itoa(pid)))
	return pid > 0 && err == nil
}
