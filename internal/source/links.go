// SPDX-License-Identifier: Apache-2.0

package source

import (
	"fmt"

	"homenode/internal/kernel/unix"
	"homenode/internal/machine"
	"homenode/internal/placement"
)

// Links reads a table of the bandwidths between nodes.
func Links(path string) (*placement.Links, error) {
	text, err := unix.ReadAtMost(path, placement.MaxLinks)
	if err != nil {
		return nil, fmt.Errorf("read table of links: %w", err)
	}
	return placement.ParseLinks(text, path)
}

// Bandwidths reads those between the nodes of a machine, from a table or from a profile of
// that machine; nil: neither is given.
func Bandwidths(links, profile string, m machine.Machine, cpuModel string) (*placement.Links, error) {
	switch {
	case links != "":
		return Links(links)
	case profile != "":
		p, err := Profile(profile, m, cpuModel)
		if err != nil {
			return nil, err
		}
		return placement.MeasuredLinks(p)
	}
	return nil, nil
}
