// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"homenode/internal/unit"
)

const kfdDir = "sys/class/kfd/kfd/topology/nodes"

// typeXGMI is CRAT_IOLINK_TYPE_XGMI (drivers/gpu/drm/amd/amdkfd/kfd_crat.h).
const typeXGMI = 11

// parseKFD reads the lines of
//
//	/sys/class/kfd/kfd/topology/nodes/1/properties             domain 0
//	                                                           location_id 49920
//	/sys/class/kfd/kfd/topology/nodes/1/io_links/0/properties  type 11
//	                                                           node_to 2
//	                                                           max_bandwidth 50000
//
// Unit: location_id is bus, device and function of a PCI device, 0 for CPUs; bandwidth is
// MB/s. Since 4.0 (drivers/gpu/drm/amd/amdkfd/kfd_topology.c).
func parseKFD(text string) (map[string]uint64, error) {
	values := map[string]uint64{}
	for i, line := range strings.Split(text, "\n") {
		f := strings.Fields(line)
		if len(f) == 0 {
			continue
		}
		if len(f) != 2 {
			return nil, fmt.Errorf("line %d %s: want a name and a number", i+1, clip(line))
		}
		n, err := strconv.ParseUint(f[1], 10, 64)
		if err != nil {
			return nil, fieldError(i+1, 2, f[1])
		}
		values[f[0]] = n
	}
	return values, nil
}

// maxKFDNodes is more GPUs than a machine has.
const maxKFDNodes = 256

// xgmi fills in the bandwidth between AMD's GPUs, by PCI address.
func (t *tree) xgmi(m *Machine) {
	ids := t.ids(kfdDir, "")
	if len(ids) > maxKFDNodes {
		t.malformed(kfdDir, fmt.Errorf("%d nodes: want up to %d", len(ids), maxKFDNodes))
		return
	}
	l, at := Links{Name: "XGMIBandwidth"}, map[int]int{}
	for _, id := range ids {
		p := load(t, fmt.Sprintf("%s/%d/properties", kfdDir, id), parseKFD).Or(nil)
		if where := p["location_id"]; where != 0 && where <= math.MaxUint16 && p["domain"] <= math.MaxUint32 {
			at[id] = len(l.Devices)
			l.Devices = append(l.Devices, pciAddress{uint32(p["domain"]), uint32(where >> 8), uint32(where >> 3 & 31), uint32(where & 7)}.String())
		}
	}
	for range l.Devices {
		l.Values = append(l.Values, make([]unit.Opt[int], len(l.Devices)))
	}
	any := false
	for id, i := range at {
		any = t.xgmiFrom(id, i, at, l.Values) || any
	}
	if any {
		m.Links = append(m.Links, l)
	}
}

// xgmiFrom reads the links of one GPU.
func (t *tree) xgmiFrom(id, i int, at map[int]int, values [][]unit.Opt[int]) (any bool) {
	dir := fmt.Sprintf("%s/%d/io_links", kfdDir, id)
	links := t.ids(dir, "")
	for _, link := range slices.Compact(links) {
		p := load(t, fmt.Sprintf("%s/%d/properties", dir, link), parseKFD).Or(nil)
		to, known := at[int(p["node_to"]&math.MaxInt32)]
		if p["type"] == typeXGMI && known && p["max_bandwidth"] > 0 && p["max_bandwidth"] <= math.MaxInt32 {
			values[i][to] = unit.Some(int(p["max_bandwidth"]))
			any = true
		}
	}
	return any
}
