// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"errors"
	"fmt"
	"slices"

	"homenode/internal/journal"
	"homenode/internal/kernel"
)

// Beside is a homenode that runs beside this one, as its journal shows it: to those that
// hold no journal themselves. What it set is homenode's, not another program's limit.
type Beside struct {
	Dir     string // its state folder
	entries []journal.Entry
}

// Look reads the journal, before a window is read. It leaves out what is damaged: the
// running agent reports that, as does 'homenode restore'. After any other error the
// entries of the last look stay.
func (b *Beside) Look() error {
	boot, err := kernel.BootID(kernel.Root{})
	if err != nil {
		return err
	}
	entries, err := journal.Peek(b.Dir, boot)
	if err != nil && !errors.Is(err, journal.ErrDamaged) {
		return fmt.Errorf("read what a running homenode has set: %w", err)
	}
	b.entries = entries
	return nil
}

// Ours says that a value of a cgroup's file was set by homenode: written, or asked of the
// manager of that cgroup.
func (b *Beside) Ours(id, file, value string) bool {
	return slices.ContainsFunc(b.entries, func(e journal.Entry) bool { return e.Sets(id, file, value) })
}

// Entries are what is on record.
func (b *Beside) Entries() []journal.Entry { return b.entries }
