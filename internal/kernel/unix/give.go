// SPDX-License-Identifier: Apache-2.0

package unix

import (
	"os"
	"syscall"
)

// GiveToOwner gives a file that root has made to the owner of its folder: a service that runs as
// a user of its own must be able to read what root adds to its files. It does nothing for other
// users.
func GiveToOwner(f *os.File, dir string) error {
	if os.Geteuid() != 0 {
		return nil
	}
	st, err := os.Stat(dir)
	if err != nil {
		return err
	}
	owner, ok := st.Sys().(*syscall.Stat_t)
	if !ok {
		return nil
	}
	return f.Chown(int(owner.Uid), int(owner.Gid))
}
