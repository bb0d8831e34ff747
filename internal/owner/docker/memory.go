// SPDX-License-Identifier: Apache-2.0

package docker

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"homenode/internal/journal"
	"homenode/internal/kernel"
	"homenode/internal/kernel/unix"
)

// remembered is one set of a container that differs from its original. The file is a
// list:
//
//	[{"boot":"6f0c…","container":"1a2b…","file":"cpuset.cpus","original":"","ours":["2-3"]}]
type remembered struct {
	Boot      string   `json:"boot"` // in which it was last set: this boot's sets are in its journal
	Container string   `json:"container"`
	File      string   `json:"file"`
	Original  string   `json:"original"`
	Ours      []string `json:"ours"`
}

func (r remembered) setting() journal.Setting {
	return journal.Named(journal.OfContainer, prefix+r.Container, r.File)
}

// parseMemory refuses what no homenode wrote.
func parseMemory(data []byte) ([]remembered, error) {
	var all []remembered
	if err := json.Unmarshal(data, &all); err != nil {
		return nil, fmt.Errorf("%w (%w)", err, kernel.ErrMalformed)
	}
	for _, r := range all {
		if _, ok := container(r.setting()); !ok || len(r.Ours) == 0 {
			return nil, fmt.Errorf("container %.80q has no %.40q that was set (%w)", r.Container, r.File, kernel.ErrMalformed)
		}
	}
	return all, nil
}

// maxMemory bounds the file, bytes: some 100,000 containers.
const maxMemory = 32 << 20

func (o *Owner) load() ([]remembered, error) {
	if o.cfg.Memory == "" {
		return nil, nil
	}
	data, err := unix.ReadAtMost(o.cfg.Memory, maxMemory)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read what Docker's containers were: %w", err)
	}
	all, err := parseMemory(data)
	if err != nil {
		return nil, fmt.Errorf("parse %s: %w: put the containers' cpusets right by 'docker update' and remove the file", o.cfg.Memory, err)
	}
	return all, nil
}

// save leaves either the old file or the new one, whatever happens.
func (o *Owner) save(all []remembered) error {
	if o.cfg.Memory == "" {
		return nil
	}
	if len(all) == 0 {
		if err := os.Remove(o.cfg.Memory); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("forget what Docker's containers were: %w", err)
		}
		return nil
	}
	data, err := json.Marshal(all)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(o.cfg.Memory), 0o755)
	}
	if err == nil {
		err = replace(o.cfg.Memory, append(data, '\n'))
	}
	if err != nil {
		return fmt.Errorf("keep what Docker's containers were: %w", err)
	}
	return nil
}

func replace(file string, data []byte) error {
	// One name: the next save overwrites what a kill leaves.
	f, err := os.OpenFile(file+".new", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), file)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	dir, err := os.Open(filepath.Dir(file))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// remember keeps the original, and the values that may be set from now on. If another
// process has changed the set since, its value is the new original, and the old entry is
// dropped. before is what was remembered until then.
func (o *Owner) remember(s journal.Setting, value string) (before, all []remembered, err error) {
	before, err = o.load()
	if err != nil || o.cfg.Memory == "" {
		return nil, nil, err
	}
	d, err := o.inspect(s)
	if err != nil {
		return nil, nil, err
	}
	id, _ := container(s)
	all = slices.Clone(before)
	i := slices.IndexFunc(all, func(r remembered) bool { return r.setting() == s })
	if i < 0 {
		i, all = len(all), append(all, remembered{})
	}
	all[i].Ours = slices.Clone(all[i].Ours)
	if !o.oursIn(all[i], d) {
		all[i] = remembered{Container: id, File: s.File, Original: d.value(s.File)}
	}
	all[i].Boot = o.boot
	if !slices.Contains(all[i].Ours, value) {
		all[i].Ours = append(all[i].Ours, value)
	}
	return before, all, o.save(all)
}

// forget handles the end of a write: after the original, or an equivalent, was put back
// there is nothing to remember.
func (o *Owner) forget(all []remembered, s journal.Setting, value string) error {
	i := slices.IndexFunc(all, func(r remembered) bool { return r.setting() == s })
	if i < 0 {
		return nil
	}
	stands, err := o.Equivalent(s, all[i].Original)
	if o.Same(s, value, all[i].Original) || err == nil && o.Same(s, value, stands) {
		all = slices.Delete(all, i, i+1)
	} else {
		all[i].Ours = []string{value}
	}
	return o.save(all)
}

// Ended forgets a setting whose record has ended for any reason: put back, left to
// another process, or gone. A file that cannot be read remembers nothing that could
// differ.
func (o *Owner) Ended(s journal.Setting) error {
	all, err := o.load()
	if errors.Is(err, kernel.ErrMalformed) {
		return nil
	}
	kept := slices.DeleteFunc(slices.Clone(all), func(r remembered) bool { return r.setting() == s })
	if err != nil || len(kept) == len(all) {
		return err
	}
	return o.save(kept)
}

// Remembered is what an earlier boot set, as far as it is not known to be over. It
// neither asks Docker nor forgets anything. A restore finds out what is gone, or was
// changed by another process, and ends it (Ended). What this boot set is in a journal,
// maybe that of a running homenode.
func (o *Owner) Remembered() ([]journal.Entry, error) {
	all, err := o.load()
	var entries []journal.Entry
	for _, r := range all {
		if r.Boot != o.boot {
			entries = append(entries, journal.Entry{Setting: r.setting(), ID: number(r.Container), Original: r.Original, Ours: r.Ours})
		}
	}
	return entries, err
}

// oursIn reports whether Docker has what we set.
func (o *Owner) oursIn(r remembered, d described) bool {
	return slices.ContainsFunc(r.Ours, func(v string) bool { return o.Same(r.setting(), d.value(r.File), v) })
}
