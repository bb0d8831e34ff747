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
	Load() ([]byte, error) // nil: there is no file
	Append(line []byte) error
	Sync() error
	Truncate(size int64) error
	Replace(content []byte) error              // all or nothing
	Archive(name string, content []byte) error // keeps the old content under name
	Aside(name string, content []byte) error   // writes another file
	Asides(prefix string) ([]string, error)    // lists those
	Remove(file string) error
	Unlock() // releases the lock; Close does, too
	Close() error
}

const (
	logName  = "log"
	lockName = "lock"
)

// maxJournal bounds the log, bytes: a million settings, all outstanding. maxLock bounds
// the lock, which holds a pid.
const maxJournal, maxLock = 256 << 20, 64

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

// takeLock holds dir/lock, which contains the holder's pid.
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
		f.Close()
		return nil, locked(path)
	}
	// For people only: on a full disk it has no pid, and settings must still be put
	// back.
	if err := f.Truncate(0); err == nil {
		_, _ = fmt.Fprintf(f, "%d\n", os.Getpid())
	}
	return f, nil
}

func locked(path string) error {
	return fmt.Errorf("open journal: %s: %w%s: stop it first", filepath.Dir(path), ErrLocked, holder(path))
}

// holder is ", pid 123", or "" where that is not written yet, or never will be.
func holder(path string) string {
	pid, err := unix.ReadAtMost(path, maxLock)
	if text := strings.TrimSpace(string(pid)); err == nil && text != "" {
		return ", pid " + text
	}
	return ""
}

func (d *dirStorage) path(name string) string { return filepath.Join(d.dir, name) }

func (d *dirStorage) openLog() (err error) {
	if d.log != nil {
		d.log.Close()
	}
	d.log, err = os.OpenFile(d.path(logName), os.O_RDWR|os.O_APPEND, 0o600)
	if errors.Is(err, fs.ErrNotExist) { // Replace makes the file with its first line
		d.log = nil
		return nil
	}
	if err != nil {
		return fmt.Errorf("open journal: %w", err)
	}
	return nil
}

func (d *dirStorage) Load() ([]byte, error) {
	data, err := unix.ReadAtMost(d.path(logName), maxJournal)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
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

// errReplaced: the new content is there, but its name may not survive a crash of the
// machine.
var errReplaced = errors.New("the directory could not be synced")

// Replace writes a file beside the log and renames it, then syncs the directory. The file
// is opened before it gets the name, so later appends go to the file with that name,
// whatever fails.
func (d *dirStorage) Replace(content []byte) error {
	next := d.path(logName + ".new")
	f, err := writeSynced(next, content)
	if err != nil {
		return fmt.Errorf("write journal: %w", err)
	}
	if err := os.Rename(next, d.path(logName)); err != nil {
		return fmt.Errorf("write journal: %w", errors.Join(err, f.Close()))
	}
	if d.log != nil {
		d.log.Close()
	}
	d.log = f
	if err := d.syncDir(); err != nil {
		return fmt.Errorf("write journal: %w (%w)", err, errReplaced)
	}
	return nil
}

// writeSynced leaves the file open for appending.
func writeSynced(path string, content []byte) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_TRUNC|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	_, err = f.Write(content)
	if err = errors.Join(err, f.Sync()); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
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

// Unlock leaves everything but the lock as it is: another thread may be within any call.
func (d *dirStorage) Unlock() { d.lock.Close() }

// Close closes the file and, by that, gives up the lock.
func (d *dirStorage) Close() error {
	var err error
	if d.log != nil {
		err = d.log.Close()
	}
	if unlocked := d.lock.Close(); !errors.Is(unlocked, os.ErrClosed) {
		err = errors.Join(err, unlocked)
	}
	return err
}

// Peek reads the journal in dir without its lock, for readers. A journal that is missing,
// or is of another boot, has no entries. One of another version is an error, as for Open.
// With ErrDamaged, Peek returns the entries that can be read.
func Peek(dir, boot string) ([]Entry, error) {
	data, err := unix.ReadAtMost(filepath.Join(dir, logName), maxJournal)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read journal: %w", err)
	}
	p := parse(data, boot)
	if err := refuseVersion(p.records); err != nil {
		return nil, err
	}
	l := ledger{}
	for _, r := range p.records {
		if r.Kind == kindBoot && r.Boot != boot {
			return nil, nil
		}
		l.replay(r)
	}
	kept, err := asides(dir, asideOf(boot))
	if len(p.damage) > 0 {
		kept = append(kept, filepath.Join(dir, logName))
	}
	return l.entries(func(Entry) bool { return true }), errors.Join(err, damageError(kept))
}
