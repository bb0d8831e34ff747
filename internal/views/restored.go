// SPDX-License-Identifier: Apache-2.0

package views

import (
	"fmt"
	"io"

	"homenode/internal/journal"
	"homenode/internal/render"
	"homenode/internal/schema"
)

// RestoredReport is what 'restore -o json' prints.
type RestoredReport struct {
	Schema   int                `json:"schema"` // 1
	DryRun   bool               `json:"dry_run"`
	Restored []journal.Restored `json:"restored"`
}

// Restored prints what was put back, or would be.
func Restored(w io.Writer, output string, dry bool, restored []journal.Restored) error {
	if output == "json" {
		if restored == nil {
			restored = []journal.Restored{}
		}
		return schema.NewEncoder(w).Encode(RestoredReport{1, dry, restored})
	}
	for _, r := range restored {
		if dry {
			fmt.Fprint(w, "dry run: ")
		}
		fmt.Fprintln(w, render.Printable(fmt.Sprint(r)))
	}
	return nil
}
