// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"path/filepath"
	"strings"
	"time"
)

// CheckPeriod checks the period of commands that read windows.
func CheckPeriod(p time.Duration) error {
	if p < 10*time.Millisecond || p > time.Hour {
		return fmt.Errorf("--period is %v: want 10ms to 1h", p)
	}
	return nil
}

// CheckGlobs checks flags that choose cgroups.
func CheckGlobs(flag string, globs []string) error {
	for _, g := range globs {
		if _, err := filepath.Match(g, "/"); err != nil || !strings.HasPrefix(g, "/") {
			return fmt.Errorf("%s is %q: want a pattern of a cgroup path, e.g. '/demo/*'", flag, g)
		}
	}
	return nil
}
