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

// OpenShared opens a file that root and a service's user write, such as a lock, and makes it if it is
// not there. Only what it has made itself is given away, and it follows no link: the folder is the
// service's.
func OpenShared(path string, flag int) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL|syscall.O_NOFOLLOW|flag, 0o600)
	if err == nil {
		if err := GiveToOwner(f, filepath.Dir(path)); err != nil {
			return nil, errors.Join(err, f.Close())
		}
		return f, nil
	}
	if !errors.Is(err, os.ErrExist) {
		return nil, err
	}
	return os.OpenFile(path, os.O_RDWR|syscall.O_NOFOLLOW|flag, 0)
}

// ReplaceShared is ReplaceFile for a file that a service's user reads, too: what root writes is given
// to the owner of the folder.
func ReplaceShared(path string, text []byte) error {
	return replace(path, text, func(f *os.File) error { return GiveToOwner(f, filepath.Dir(path)) })
}

// ReplaceFile writes a private file so that a crash leaves the old one or the new one.
func ReplaceFile(path string, text []byte) error {
	return replace(path, text, func(*os.File) error { return nil })
}

func replace(path string, text []byte, first func(*os.File) error) error {
	dir := filepath.Dir(path)
	f, err := os.CreateTemp(dir, ".new-*") // 0600
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // already renamed after success
	if err = first(f); err == nil {
		_, err = f.Write(text)
	}
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err = os.Rename(f.Name(), path); err != nil {
		return err
	}
	return syncFolder(dir)
}

// RemoveFile removes a file so that it does not come back after a crash.
func RemoveFile(path string) error {
	if err := os.Remove(path); err != nil {
		return err
	}
	return syncFolder(filepath.Dir(path))
}

func syncFolder(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
