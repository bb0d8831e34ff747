// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"errors"
	"fmt"
)

// Remembering is an Owner whose settings outlive a boot, as those that Docker keeps for
// each container do. The journal is of one boot: such an owner remembers by himself what
// he replaced, on a disk, and says so after the next boot.
type Remembering interface {
	// Remembered lists what he replaced and did not put back, in this boot or an earlier.
	Remembered() ([]Entry, error)
}

// adopt puts on record what an owner remembers of an earlier boot: then it is put back
// like everything else. What is on record already is this boot's.
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
			bad := j.add(record{Kind: kindIntent, Workload: e.Workload, Setting: e.Setting, ID: e.ID, Old: e.Original, New: value}, true)
			err = errors.Join(err, bad)
		}
	}
	if err != nil {
		return fmt.Errorf("take over what an earlier boot left: %w", err)
	}
	return nil
}
