// SPDX-License-Identifier: Apache-2.0

package launch

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"homenode/internal/kernel/procfs"
	"homenode/internal/kernel/unix"
	"homenode/internal/set"
	"homenode/internal/unit"
)

// MoveRoom is the room that nodes have for memory that is moved there.
type MoveRoom struct {
	Rooms   []Room
	Reserve map[int]unit.Bytes // left to the kernel, by node
	// Pools is the free part of the hugetlb pools of all nodes together, by the size of
	// a page: a page has no room in the pool of another size.
	Pools map[unit.Bytes]unit.Bytes
}

// reserveShare is the part of a node that is never filled by moving: with less, the
// kernel reclaims what was just moved; more refuses what would fit.
const reserveShare = 100

// ReadMoveRoom reads what nodes have. The reserve is 1/100 of a node, and at least
// the low watermarks of its zones: below those the kernel reclaims.
func ReadMoveRoom(root unix.Root, nodes set.NodeSet, page unit.Bytes) (MoveRoom, error) {
	rooms, err := ReadRoom(root, nodes)
	if err != nil {
		return MoveRoom{}, err
	}
	m := MoveRoom{Rooms: rooms, Reserve: map[int]unit.Bytes{}, Pools: map[unit.Bytes]unit.Bytes{}}
	var buf unix.Buffer
	var low map[int]uint64
	if data, err := buf.ReadFile(root.Path("/proc/zoneinfo")); err == nil {
		if low, err = procfs.ParseZoneinfo(data); err != nil {
			return MoveRoom{}, err
		}
	}
	for _, r := range rooms {
		m.Reserve[r.Node] = max(r.Total.Or(0)/reserveShare, unit.Bytes(low[r.Node])*page)
		if err := m.addPools(root, r.Node, &buf); err != nil {
			return MoveRoom{}, err
		}
	}
	return m, nil
}

// addPools reads nodeN/hugepages/hugepages-SIZEkB/free_hugepages (since 2.6.32).
// No directory: the kernel has no hugetlb.
func (m MoveRoom) addPools(root unix.Root, node int, buf *unix.Buffer) error {
	dir := fmt.Sprintf("/sys/devices/system/node/node%d/hugepages", node)
	entries, _ := os.ReadDir(root.Path(dir))
	for _, e := range entries {
		text, _ := strings.CutPrefix(strings.TrimSuffix(e.Name(), "kB"), "hugepages-")
		size, err := strconv.ParseInt(text, 10, 32)
		if err != nil || size <= 0 {
			continue
		}
		file := dir + "/" + e.Name() + "/free_hugepages"
		data, err := buf.ReadFile(root.Path(file))
		if err != nil {
			return unix.Explain("read", file, "", err)
		}
		pages, err := strconv.ParseInt(strings.TrimSpace(string(data)), 10, 64)
		if err != nil || pages < 0 || pages > 1<<50/size {
			return fmt.Errorf("parse %s: %.20q: not a number of pages (%w)", file, data, unix.ErrMalformed)
		}
		m.Pools[unit.Bytes(size)*unit.KiB] += unit.Bytes(pages*size) * unit.KiB
	}
	return nil
}

// Usable is the memory that may be moved there, without the reserve; false if that of a
// node is unknown.
func (m MoveRoom) Usable() (sum unit.Bytes, ok bool) {
	for _, r := range m.Rooms {
		usable, ok := r.Usable()
		if !ok {
			return 0, false
		}
		sum += max(0, usable-m.Reserve[r.Node])
	}
	return sum, true
}

// String lists what each node has, for an error.
func (m MoveRoom) String() string {
	var each []string
	for _, r := range m.Rooms {
		each = append(each, fmt.Sprintf("node %d has %s free and %s of page cache that could go, and keeps %v", r.Node, r.Free, r.Cache, m.Reserve[r.Node]))
	}
	return strings.Join(each, ", ")
}

// Fit is how much of pages, and of hugetlb pages by their size, has room, and a
// sentence for what does not.
func (m MoveRoom) Fit(pages unit.Bytes, huge map[unit.Bytes]unit.Bytes) (fits unit.Bytes, missing []string) {
	switch usable, ok := m.Usable(); {
	case pages == 0:
	case !ok:
		missing = append(missing, "the free memory of a node is unknown")
	case pages > usable:
		fits += usable
		missing = append(missing, fmt.Sprintf("%v are missing: %v", pages-usable, m))
	default:
		fits += pages
	}
	for _, size := range slices.Sorted(maps.Keys(huge)) {
		need, free := huge[size], m.Pools[size]
		if need > free {
			missing = append(missing, fmt.Sprintf("%v of its huge pages of %v are missing: the pool of these has %v free there (free_hugepages)", need-free, size, free))
		}
		fits += min(need, free)
	}
	return fits, missing
}
