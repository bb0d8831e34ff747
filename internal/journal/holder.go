// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"homenode/internal/kernel/unix"
)

// Holder returns the pid of the process that holds the journal in dir: "" if none does,
// "unknown" where the holder could not write its pid. It neither makes the journal nor
// keeps its lock, so it may be wrong a moment later: Open decides.
func Holder(dir string) (string, error) {
	path := filepath.Join(dir, lockName)
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("open journal: %w", err)
	}
	defer f.Close() // gives the lock back
	got, err := unix.TryLock(f)
	if err != nil || got {
		return "", unix.Explain("lock", path, "", err)
	}
	pid, err := unix.ReadAtMost(path, maxLock)
	if err != nil {
		return "", fmt.Errorf("open journal: %w", err)
	}
	if text := strings.TrimSpace(string(pid)); text != "" {
		return text, nil
	}
	return "unknown", nil
}
