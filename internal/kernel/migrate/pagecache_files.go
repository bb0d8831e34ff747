// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"errors"
	"fmt"

	"homenode/internal/kernel/unix"
)

// pageCache is kernel/pagecache.
type pageCache struct{ root unix.Root }

func (c pageCache) find([]int, bool) ([]cachedFile, []string, error) {
	return nil, nil, fmt.Errorf("find the page cache of processes: %w", unix.ErrNotSupported)
}

func (c pageCache) open(f cachedFile) (cachedView, error) {
	return nil, errors.New("open " + f.name + ": not supported")
}
