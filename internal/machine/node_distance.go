// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"fmt"
	"strconv"
	"strings"

	"homenode/internal/set"
	"homenode/internal/unit"
)

// maxDistance is a SLIT entry's largest value; the table has one byte per pair.
const maxDistance = 255

// parseNodeDistance reads
//
//	/sys/devices/system/node/node0/distance   10 16 16 22 16 22 16 22
//	/sys/devices/system/node/node8/distance   40 10 80 80 80 80 80 80
//
// Unit: none (SLIT; 10 = local, 255 = no way). The row is *from* this node; its
// columns are the online nodes in ascending id. Since 2.6.5. A machine without
// NUMA support has no such file.
func parseNodeDistance(text string) ([]int, error) {
	fields := strings.Fields(text)
	if len(fields) > set.MaxNode+1 {
		return nil, fmt.Errorf("line 1: %d fields, more than there can be nodes", len(fields))
	}
	var row []int
	for i, f := range fields {
		d, err := strconv.ParseUint(f, 10, 8)
		if err != nil || !isDigits(f) {
			return nil, fieldError(1, i+1, f)
		}
		row = append(row, int(d))
	}
	return row, nil
}

// distances reads the row of every node. Values below 10 are reserved (ACPI
// 6.5, 5.2.17): some firmware has 0 on the diagonal, which Distance reads as 10;
// elsewhere it is an error, and unknown.
func (t *tree) distances(nodes []Node) [][]unit.Opt[int] {
	columns := t.distanceColumns(nodes)
	m := make([][]unit.Opt[int], len(nodes))
	for i, n := range nodes {
		m[i] = make([]unit.Opt[int], len(nodes))
		path := nodePath(n.ID, "distance")
		row, ok := load(t, path, parseNodeDistance).Get()
		if !ok {
			continue
		}
		t.failed("parse", path, fillRow(m[i], nodes, i, row, columns))
	}
	return m
}

// distanceColumns are the possible meanings of a row's columns, best first. The kernel
// prints online nodes. A tree edited by hand may have lost a node that the rows still
// count; then node/possible fits.
func (t *tree) distanceColumns(nodes []Node) []set.NodeSet {
	columns := []set.NodeSet{Machine{Nodes: nodes}.NodeIDs()}
	for _, name := range []string{"online", "possible"} {
		if ids, ok := load(t, nodeDir+"/"+name, parseNodeList).Get(); ok {
			columns = append(columns, ids)
		}
	}
	return columns
}

// fillRow puts the numbers of node i's row where its nodes are.
func fillRow(out []unit.Opt[int], nodes []Node, i int, row []int, columns []set.NodeSet) error {
	byID := map[int]int{}
	for _, ids := range columns {
		if ids.Len() != len(row) || len(byID) > 0 {
			continue
		}
		for k, id := range ids.IDs() {
			byID[id] = row[k]
		}
	}
	if len(byID) == 0 {
		return fmt.Errorf("%w: line 1: %d fields for %d nodes", ErrMalformed, len(row), len(nodes))
	}
	return placeDistances(out, nodes, i, byID)
}

func placeDistances(out []unit.Opt[int], nodes []Node, i int, byID map[int]int) error {
	var err error
	for j, n := range nodes {
		d, ok := byID[n.ID]
		switch {
		case ok && d >= LocalDistance:
			out[j] = unit.Some(d)
		case ok && i != j:
			err = fmt.Errorf("%w: line 1: distance %d to node %d: values below 10 are reserved", ErrMalformed, d, n.ID)
		}
	}
	return err
}
