// SPDX-License-Identifier: Apache-2.0

package source

import (
	"fmt"

	"homenode/internal/kernel/unix"
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
