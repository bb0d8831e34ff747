// SPDX-License-Identifier: Apache-2.0

package views

import (
	"errors"
	"fmt"
	"io"

	"homenode/internal/exit"
	"homenode/internal/journal"
	"homenode/internal/kernel"
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

// RestoreResult is how a restore ended: a setting that failed, or is kept because others depend on it,
// stays outstanding. The result is "partly" if any other setting was put back.
func RestoreResult(dry bool, restored []journal.Restored, err error) error {
	done, open, then := 0, 0, "are still to be put back: run 'homenode restore' again later"
	if dry {
		then = "could not be put back now"
	}
	for _, r := range restored {
		if r.Result == journal.NotDone || r.Result == journal.Kept {
			open++
		} else {
			done++
		}
	}
	switch {
	case errors.Is(err, journal.ErrDamaged):
		return exit.With(exit.Partly, err)
	case err == nil && len(restored) == 0:
		return exit.With(exit.Nothing, errors.New("nothing to put back: the journal is empty"))
	case open > 0 && done > 0:
		return exit.With(exit.Partly, errors.Join(err, fmt.Errorf("%d of %d settings %s", open, open+done, then)))
	case open > 0 && err == nil:
		err = fmt.Errorf("%d settings %s", open, then)
	}
	return exit.Precondition(err)
}

// Suspects prints, for people whatever the output format, what a damaged journal may have left.
func Suspects(w io.Writer, all []kernel.Suspect, err error) {
	if err != nil {
		fmt.Fprintln(w, render.Printable("homenode: look for what the damaged journal may have left: "+err.Error()))
	}
	for _, s := range all {
		fmt.Fprintln(w, render.Printable("may be left: "+s.String()))
	}
}
