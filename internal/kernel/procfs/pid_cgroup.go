// SPDX-License-Identifier: Apache-2.0

package procfs

import "bytes"

// Membership is one line of /proc/PID/cgroup.
type Membership struct {
	Controllers string // "cpuset", "cpu,cpuacct", "name=systemd"; "" for cgroup v2
	Path        string
}

// ParsePIDCgroup reads /proc/PID/cgroup (since 2.6.24), one line per hierarchy:
//
//	3:cpuset:/demo/a
//	0::/demo/a
func ParsePIDCgroup(data []byte) ([]Membership, error) {
	var all []Membership
	for n, line := range lines(data) {
		_, rest, ok1 := bytes.Cut(line, []byte(":"))
		ctl, path, ok2 := bytes.Cut(rest, []byte(":"))
		if !ok1 || !ok2 || len(path) == 0 || path[0] != '/' {
			return nil, malformed("/proc/PID/cgroup", n, line, errShort)
		}
		all = append(all, Membership{string(ctl), string(path)})
	}
	return all, nil
}
