// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"

	"homenode/internal/cli"
)

// writable tests every output path before minutes are spent on measuring.
func (f benchFlags) writable() error {
	if err := cli.CanReplace("--out", f.out); err != nil {
		return err
	}
	if f.html != "" && f.html != "-" {
		if err := cli.CanReplace("--html", f.html); err != nil {
			return err
		}
	}
	if f.pictures == "" {
		return nil
	}
	if err := os.MkdirAll(f.pictures, 0o755); err != nil {
		return fmt.Errorf("--pictures: make folder for pictures: %w", err)
	}
	return cli.CanCreate("--pictures "+f.pictures, f.pictures)
}
