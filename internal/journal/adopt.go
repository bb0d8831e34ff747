// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"errors"
	"fmt"
)

// Remembering is an Owner whose settings outlive a boot, such as those that Docker keeps
// for each container. The journal is of one boot: such an owner keeps its own record on
// disk of what it replaced, and reports it after the next boot.
type Remembering interface {
	// Remembered lists what the owner replaced and did not put back, in this boot or an
	// earlier one.
	Remembered() ([]Entry, error)
}

// adopt puts on record what an owner remembers of an earlier boot, so that it is put back
// like everything else. A setting that is already on record belongs to this boot.
func (j *Journal) adopt(owner Owner) error {
	r, ok := owner.(Remembering)
	if !ok {
		return nil
	}
	all, err := r.Remembered()
	for _, e := range all {
		if j.ledger[e.Setting] != nil {
			continue
		}
		for _, value := range e.Ours {
			bad := j.addRecord(record{Kind: kindIntent, Workload: e.Workload, Setting: e.Setting, ID: e.ID, Old: e.Original, New: value}, true)
			err = errors.Join(err, bad)
		}
	}
	if err != nil {
		return fmt.Errorf("take over what an earlier boot left: %w", err)
	}
	return nil
}
