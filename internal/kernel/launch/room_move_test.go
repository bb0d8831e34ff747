// SPDX-License-Identifier: Apache-2.0

package launch

import (
	"strings"
	"testing"

	"homenode/internal/kernel/kerneltest"
	"homenode/internal/unit"
)

func TestDecodeMoveRoom(t *testing.T) {
	const dir = "/sys/devices/system/node/node"
	files := kerneltest.Files{
		dir + "0/meminfo": "Node 0 MemTotal: 102400 kB\nNode 0 MemFree: 51200 kB\nNode 0 FilePages: 2048 kB\n",
		dir + "1/meminfo": "Node 1 MemTotal: 102400 kB\nNode 1 MemFree: 100 kB\nNode 1 FilePages: 0 kB\n",
		dir + "2/meminfo": "Node 2 MemTotal: 102400 kB\n",
		dir + "0/hugepages/hugepages-2048kB/free_hugepages":    "4\n",
		dir + "0/hugepages/hugepages-1048576kB/free_hugepages": "1\n",
		dir + "0/hugepages/README":                             "no pool",
		"/proc/zoneinfo":                                       "Node 0, zone Normal\n   low 512\nNode 1, zone Normal\n   low 1\n",
	}
	root := kerneltest.Tree(t, files)
	room, err := ReadMoveRoom(root, nodes("0-1"), 4*unit.KiB)
	if err != nil || room.Pools[unit.GiB] != unit.GiB || room.Pools[2*unit.MiB] != 8*unit.MiB || room.Reserve[0] != 2*unit.MiB || room.Reserve[1] != 1*unit.MiB {
		t.Fatalf("%+v, %v", room, err)
	}
	if usable, ok := room.Usable(); !ok || usable != 50*unit.MiB { // node 1 is below its reserve
		t.Errorf("%v usable, %t", usable, ok)
	}
	for _, c := range []struct {
		pages       unit.Bytes
		small, huge unit.Bytes // of 2 MiB, of 1 GiB
		fits        unit.Bytes
		want        string // of the sentences; "": all fits
	}{
		{0, 0, 0, 0, ""},
		{50 * unit.MiB, 0, unit.GiB, unit.GiB + 50*unit.MiB, ""},
		{51 * unit.MiB, 0, 0, 50 * unit.MiB, "1 MiB are missing: node 0 has 50 MiB free and 2 MiB of page cache that could go, and keeps 2 MiB, node 1 has 100 KiB free"},
		{unit.MiB, 8 * unit.MiB, 2 * unit.GiB, unit.GiB + 9*unit.MiB, "1 GiB of its huge pages of 1 GiB are missing: the pool of these has 1 GiB free there"},
		{0, 10 * unit.MiB, 0, 8 * unit.MiB, "2 MiB of its huge pages of 2 MiB are missing: the pool of these has 8 MiB free there"}, // those of 1 GiB are no room for them
	} {
		fits, missing := room.Fit(c.pages, map[unit.Bytes]unit.Bytes{2 * unit.MiB: c.small, unit.GiB: c.huge})
		if fits != c.fits || !strings.Contains(strings.Join(missing, "; "), c.want) || (c.want == "") != (len(missing) == 0) {
			t.Errorf("%v, %v and %v: %v fit, %q", c.pages, c.small, c.huge, fits, missing)
		}
	}
	silent, err := ReadMoveRoom(root, nodes("0,2"), 4*unit.KiB)
	if fits, missing := silent.Fit(1, nil); err != nil || fits != 0 || len(missing) != 1 {
		t.Errorf("%v, %q, %v", fits, missing, err)
	}
	for _, bad := range []string{"", "x", "-1", "9999999999999999"} {
		kerneltest.Write(t, root, kerneltest.Files{dir + "0/hugepages/hugepages-2048kB/free_hugepages": bad})
		if _, err := ReadMoveRoom(root, nodes("0"), 4*unit.KiB); err == nil || !strings.Contains(err.Error(), "free_hugepages") {
			t.Errorf("%q: %v", bad, err)
		}
	}
	if _, err := ReadMoveRoom(root, nodes("9"), 4*unit.KiB); err == nil {
		t.Error("a node that is not there has room")
	}
}
