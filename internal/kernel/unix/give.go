// SPDX-License-Identifier: Apache-2.0

package unix

import (
	"errors"
	"os"
	"path/filepath"
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

// ReplaceFile writes a private file so that a crash leaves the old one or the new one.
func ReplaceFile(path string, text []byte) (err error) {
	dir := filepath.Dir(path)
	f, err := os.CreateTemp(dir, ".new-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(f.Name())
		}
	}()
	if err = GiveToOwner(f, dir); err == nil {
		_, err = f.Write(text)
	}
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err = os.Rename(f.Name(), path); err != nil {
		return err
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
