// SPDX-License-Identifier: Apache-2.0

package procfs

import (
	"bytes"

	"homenode/internal/unit"
)

// NodeMeminfo is the memory of one node.
type NodeMeminfo struct {
	Total, Free, File, Anon unit.Opt[unit.Bytes]
}

// ParseNodeMeminfo reads /sys/devices/system/node/nodeN/meminfo (since 2.6.0;
// FilePages and AnonPages since 2.6.18), in KiB:
//
//	Node 0 MemTotal:        4417748 kB
//	Node 0 FilePages:         66620 kB
func ParseNodeMeminfo(data []byte) (NodeMeminfo, error) {
	var m NodeMeminfo
	want := map[string]*unit.Opt[unit.Bytes]{"MemTotal:": &m.Total, "MemFree:": &m.Free, "FilePages:": &m.File, "AnonPages:": &m.Anon}
	for n, line := range lines(data) {
		f := bytes.Fields(line)
		if len(f) < 4 || want[string(f[2])] == nil {
			continue
		}
		kib, err := number(f[3])
		if err != nil || kib > 1<<50 {
			return NodeMeminfo{}, malformed("node/meminfo", n, line, errNumber)
		}
		*want[string(f[2])] = unit.Some(unit.Bytes(kib) * unit.KiB)
	}
	return m, nil
}
