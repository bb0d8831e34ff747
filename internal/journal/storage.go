// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"homenode/internal/kernel/unix"
)

// storage is the journal's file; tests have one that crashes.
type storage interface {
	Load() ([]byte, error)
	Append(line []byte) error
	Sync() error
	Truncate(size int64) error
	Replace(content []byte) error              // all or nothing
	Archive(name string, content []byte) error // keeps the old content under name
	Close() error
}

const (
	logName  = "log"
	lockName = "lock"
)

// dirStorage keeps the journal in a directory of its own.
type dirStorage struct {
	dir  string
	lock *os.File
	log  *os.File
}

func openDir(dir string) (*dirStorage, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("open journal: %w: choose another state directory, or run as root", err)
	}
	lock, err := takeLock(filepath.Join(dir, lockName))
	if err != nil {
		return nil, err
	}
	d := &dirStorage{dir: dir, lock: lock}
	if err := d.openLog(); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

// takeLock holds dir/lock, which tells the pid of whoever holds it.
func takeLock(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open journal: %w", err)
	}
	got, err := unix.TryLock(f)
	if err != nil {
		return nil, errors.Join(unix.Explain("lock", path, "", err), f.Close())
	}
	if !got {
		pid, _ := os.ReadFile(path)
		f.Close()
		return nil, fmt.Errorf("open journal: %s: %w, pid %s: stop it first", filepath.Dir(path), ErrLocked, strings.TrimSpace(string(pid)))
	}
	if err := f.Truncate(0); err == nil {
		_, err = fmt.Fprintf(f, "%d\n", os.Getpid())
	}
	return f, err
}

func (d *dirStorage) path(name string) string { return filepath.Join(d.dir, name) }

func (d *dirStorage) openLog() (err error) {
	if d.log != nil {
		d.log.Close()
	}
	d.log, err = os.OpenFile(d.path(logName), os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("open journal: %w", err)
	}
	return nil
}

func (d *dirStorage) Load() ([]byte, error) {
	data, err := os.ReadFile(d.path(logName))
	if err != nil {
		return nil, fmt.Errorf("read journal: %w", err)
	}
	return data, nil
}

func (d *dirStorage) Append(line []byte) error {
	_, err := d.log.Write(line)
	return err
}

func (d *dirStorage) Sync() error               { return d.log.Sync() }
func (d *dirStorage) Truncate(size int64) error { return d.log.Truncate(size) }

// Replace writes beside and renames, then syncs the directory.
func (d *dirStorage) Replace(content []byte) error {
	next := d.path(logName + ".new")
	if err := writeSynced(next, content); err != nil {
		return fmt.Errorf("write journal: %w", err)
	}
	if err := os.Rename(next, d.path(logName)); err != nil {
		return fmt.Errorf("write journal: %w", err)
	}
	if err := d.syncDir(); err != nil {
		return fmt.Errorf("write journal: %w", err)
	}
	return d.openLog()
}

func writeSynced(path string, content []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	return errors.Join(err, f.Sync(), f.Close())
}

func (d *dirStorage) syncDir() error {
	f, err := os.Open(d.dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// Archive keeps an older boot's log as log.<boot>.
func (d *dirStorage) Archive(name string, content []byte) error {
	old := d.path(logName + "." + filepath.Base("/"+name))
	if err := os.Link(d.path(logName), old); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("archive journal: %w", err)
	}
	return d.Replace(content)
}

// Close closes the file and, by that, gives up the lock.
func (d *dirStorage) Close() error {
	var err error
	if d.log != nil {
		err = d.log.Close()
	}
	return errors.Join(err, d.lock.Close())
}

// Peek reads the journal in dir without its lock, for those who only look. One
// that is not there, or is of another boot, has no entries.
func Peek(dir, boot string) ([]Entry, error) {
	data, err := os.ReadFile(filepath.Join(dir, logName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read journal: %w", err)
	}
	records, _, _ := parse(data)
	l := ledger{}
	for _, r := range records {
		if r.Kind == kindBoot && r.Boot != boot {
			return nil, nil
		}
		l.replay(r)
	}
	return l.entries(func(Entry) bool { return true }), nil
}
