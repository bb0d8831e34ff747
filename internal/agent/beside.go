// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"errors"
	"fmt"
	"slices"

	"homenode/internal/journal"
	"homenode/internal/kernel"
)

// Beside is a homenode that runs on the same host, as its journal shows it. It is for a
// reader that holds no journal itself. What the other homenode has set is homenode's,
// not another program's limit.
type Beside struct {
	Dir     string // the other homenode's state folder
	entries []journal.Entry
}

// Look reads the journal. Call it before a window is read. Damaged records are left
// out: the running agent reports them, as 'homenode restore' does. After any other
// error the entries of the last look stay.
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

// Ours says whether homenode set this value of a cgroup's file, by writing it or through
// the manager of that cgroup.
func (b *Beside) Ours(id, file, value string) bool {
	return slices.ContainsFunc(b.entries, func(e journal.Entry) bool { return e.Sets(id, file, value) })
}

// Entries are the recorded settings.
func (b *Beside) Entries() []journal.Entry { return b.entries }
