// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// ErrDamaged means that a journal of this boot had parts that cannot be read. What they
// recorded may still be set, and no record of it is left.
var ErrDamaged = errors.New("the journal was damaged")

// asideOf is the prefix of files that keep what was damaged in a boot. Those of another
// boot do not matter: its settings are gone.
func asideOf(boot string) string { return logName + ".damaged." + filepath.Base("/"+boot) + "." }

// putAside keeps a damaged log as it is, and continues with the readable part. A kill
// in between leaves the damaged log, which is put aside once more under the same name.
func (j *Journal) putAside(data []byte, damage []string) error {
	prefix := asideOf(j.boot)
	name := fmt.Sprintf("%s%08x", prefix, crc32.ChecksumIEEE(data))
	why := strings.Join(damage, "\n") + "\n"
	if err := errors.Join(j.store.Aside(name+".why", []byte(why)), j.store.Aside(name, data)); err != nil {
		return fmt.Errorf("keep the damaged journal: %w", err)
	}
	if err := j.startOver(j.store.Replace); err != nil {
		return err
	}
	var err error
	j.damaged, err = j.store.Asides(prefix)
	return err
}

// Damage is ErrDamaged, with where the damaged log is kept and what to do, until the user
// confirms having looked (ForgetDamage). It is nil where there is none.
func (j *Journal) Damage() error { return damageError(j.damaged) }

func damageError(files []string) error {
	files = slices.DeleteFunc(slices.Clone(files), func(name string) bool { return strings.HasSuffix(name, ".why") })
	if len(files) == 0 {
		return nil
	}
	return fmt.Errorf("%w: the unreadable journal is kept in %s (why, in %s.why): settings that it recorded may still be there; look at the cgroups, then run 'homenode restore --forget-damage'",
		ErrDamaged, strings.Join(files, ", "), files[len(files)-1])
}

// ForgetDamage removes the copies of damaged journals.
func (j *Journal) ForgetDamage() error {
	var errs []error
	for _, file := range j.damaged {
		errs = append(errs, j.store.Remove(file))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("forget the damaged journal: %w", err)
	}
	j.damaged = nil
	return nil
}

// Aside writes a file beside the log.
func (d *dirStorage) Aside(name string, content []byte) error {
	f, err := writeSynced(d.path(name), content)
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), d.syncDir())
}

// Asides lists the files beside the log whose names begin with prefix.
func (d *dirStorage) Asides(prefix string) ([]string, error) { return asides(d.dir, prefix) }

func asides(dir, prefix string) (files []string, err error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look for damaged journals: %w", err)
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), prefix) {
			files = append(files, filepath.Join(dir, e.Name()))
		}
	}
	return files, nil
}

// Remove removes one of them.
func (d *dirStorage) Remove(file string) error { return os.Remove(file) }
