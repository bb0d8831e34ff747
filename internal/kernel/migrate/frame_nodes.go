// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"fmt"
	"math/bits"
	"os"
	"strconv"
	"strings"

	"homenode/internal/kernel/unix"
)

// frameNodes knows the node of a page frame, from the nodes' memory blocks.
type frameNodes struct {
	shift uint    // of a frame number
	node  []int16 // by block; unknownNode where it is not shown, or several nodes have it
}

const (
	unknownNode = -1
	mostBlocks  = 1 << 22
)

// readFrameNodes reads the links of /sys/devices/system/node/node*/memory* (since 2.6.33)
// and the size of a block, in hexadecimal; nil where the kernel has none.
func readFrameNodes(root unix.Root) *frameNodes {
	var buf unix.Buffer
	data, err := buf.ReadFile(root.Path("/sys/devices/system/memory/block_size_bytes"))
	if err != nil {
		return nil
	}
	size, err := strconv.ParseUint(strings.TrimSpace(string(data)), 16, 64)
	if err != nil || size < smallPage || size&(size-1) != 0 {
		return nil
	}
	f := &frameNodes{shift: uint(bits.TrailingZeros64(size / uint64(unix.PageSize())))}
	dir := root.Path("/sys/devices/system/node")
	names, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	for _, name := range names {
		node, ok := numbered(name.Name(), "node", 1<<15)
		if !ok {
			continue
		}
		blocks, err := os.ReadDir(fmt.Sprintf("%s/node%d", dir, node))
		if err != nil {
			return nil
		}
		for _, b := range blocks {
			if block, ok := numbered(b.Name(), "memory", mostBlocks); ok {
				f.put(block, int16(node))
			}
		}
	}
	return f
}

// numbered reads "node12" and the like.
func numbered(name, prefix string, below int) (int, bool) {
	digits, ok := strings.CutPrefix(name, prefix)
	n, err := strconv.Atoi(digits)
	return n, ok && err == nil && n >= 0 && n < below
}

func (f *frameNodes) put(block int, node int16) {
	for len(f.node) <= block {
		f.node = append(f.node, unknownNode)
	}
	const several = -2
	switch f.node[block] {
	case unknownNode:
		f.node[block] = node
	case node:
	default:
		f.node[block] = several
	}
}

// of is a frame's node; false where it is unknown.
func (f *frameNodes) of(pfn uint64) (int32, bool) {
	block := pfn >> f.shift
	if block >= uint64(len(f.node)) || f.node[block] < 0 {
		return 0, false
	}
	return int32(f.node[block]), true
}
