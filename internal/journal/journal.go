// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"errors"
	"fmt"
	"sync"

	"homenode/internal/kernel"
)

// Journal is the open record of what was replaced. One process holds it at a time.
type Journal struct {
	mu       sync.Mutex
	store    storage
	boot     string
	seq      uint64
	size     int64 // bytes of whole records in the store
	least    int64 // size after it was last shortened
	ledger   ledger
	damaged  []string                        // files that keep what could not be read
	broken   error                           // the file could not be written: no setting may be changed any more
	ownValue func(s Setting, id uint64) bool // reports that a setting inherited nothing

	gate gate

	inCgroups map[Setting]*Entry // by the cgroup's file in which it takes effect; nil: the ledger has changed
}

// Open opens or makes the journal in dir and takes its lock. It fails, naming the other
// process's pid, while another process has it.
func Open(dir string) (*Journal, error) {
	boot, err := kernel.BootID(kernel.At("/"))
	if err != nil {
		return nil, err
	}
	store, err := openDir(dir)
	if err != nil {
		return nil, err
	}
	j, err := open(store, boot)
	if err != nil {
		return nil, errors.Join(err, store.Close())
	}
	return j, nil
}

// open reads an existing journal. A torn tail, left by a crash within a write, is cut
// off. Another boot's journal is put aside.
func open(store storage, boot string) (*Journal, error) {
	data, err := store.Load()
	if err != nil {
		return nil, err
	}
	j := &Journal{store: store, boot: boot, ledger: ledger{}}
	p := parse(data, boot)
	if data != nil && len(data) == 0 { // the file is made with its first line
		p.say(1, "it is empty")
	}
	if err := refuseVersion(p.records); err != nil {
		return nil, err
	}
	if len(p.records) > 0 && p.records[0].Kind == kindBoot && p.records[0].Boot != boot {
		return j, j.startOver(func(b []byte) error { return store.Archive(p.records[0].Boot, b) })
	}
	for _, r := range p.records {
		j.ledger.replay(r)
		j.seq = max(j.seq, r.Seq)
	}
	if len(p.damage) > 0 {
		return j, j.putAside(data, p.damage)
	}
	if j.damaged, err = store.Asides(asideOf(boot)); err != nil {
		return nil, err
	}
	if len(p.records) == 0 || p.unended {
		return j, j.startOver(store.Replace)
	}
	if j.size = int64(p.good); p.good < len(data) {
		return j, store.Truncate(j.size)
	}
	return j, nil
}

func refuseVersion(records []record) error {
	for _, r := range records {
		switch {
		case r.Kind == kindBoot && r.Version > version:
			return fmt.Errorf("open journal: it was written by a newer homenode (version %d, this one knows %d): use that one to restore", r.Version, version)
		case r.Kind == kindBoot && r.Version < version:
			return fmt.Errorf("open journal: it was written by an older homenode (version %d, this one knows %d): use that one to restore", r.Version, version)
		}
	}
	return nil
}

// startOver makes a journal that holds the ledger, and no more.
func (j *Journal) startOver(replace func([]byte) error) error {
	records := append([]record{{Seq: j.seq, Kind: kindBoot, Version: version, Boot: j.boot}}, j.ledger.snapshot(j.seq)...)
	var text []byte
	for _, r := range records {
		line, err := r.line(j.boot)
		if err != nil {
			return err
		}
		text = append(text, line...)
		j.seq = max(j.seq, r.Seq)
	}
	err := replace(text)
	if err == nil || errors.Is(err, errReplaced) {
		j.size, j.least = int64(len(text)), int64(len(text))
	}
	return err
}

// mostLog and mostGrowth bound the file's length over a long run. The file is in memory
// (/run), and what changes often (group members, threads) adds to it each time.
const (
	mostLog    = 1 << 20
	mostGrowth = 4
)

// shorten compacts a file that has grown. If that fails the file is as it was, and
// shorten tries again when it has grown as much once more.
func (j *Journal) shorten() {
	if j.size > mostLog && j.size > mostGrowth*j.least && j.compact() != nil {
		j.least = j.size
	}
}

// Seq is the number of the last record. It grows with every change, whoever makes it.
func (j *Journal) Seq() uint64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.seq
}

// Close releases the lock. It restores nothing.
func (j *Journal) Close() error { return j.store.Close() }

// Outstanding lists the settings whose original must be put back, newest first.
func (j *Journal) Outstanding() []Entry {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.ledger.entries(func(e Entry) bool { return !e.Equivalent })
}

// Equivalents lists the settings that were put back to a value that means the
// same as their original. Restore follows them.
func (j *Journal) Equivalents() []Entry {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.ledger.entries(func(e Entry) bool { return e.Equivalent })
}

// Ours reports whether the present value of a cgroup's file was set by homenode, directly
// or through a manager. An original that was put back was not.
func (j *Journal) Ours(cgroup, file, value string) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.inCgroups == nil {
		j.inCgroups = map[Setting]*Entry{}
		for _, e := range j.ledger {
			j.inCgroups[e.inCgroup()] = e
		}
	}
	e := j.inCgroups[Setting{cgroup, file}]
	return e != nil && e.Sets(cgroup, file, value)
}

// OursOf is Ours for the cgroup with that ID only.
func (j *Journal) OursOf(s Setting, id uint64, value string) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	e := j.ledger[s]
	return e != nil && e.ID == id && e.Has(value)
}

// Compact shortens the file to what still matters. A crash leaves either the old file or
// the new one.
func (j *Journal) Compact() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.compact()
}

func (j *Journal) compact() error {
	if j.broken != nil {
		return j.broken
	}
	return j.gate.pass(func() error { return j.startOver(j.store.Replace) })
}

// addRecord appends a record. With sync it is on disk before add returns.
//
// A write that failed may have left half a line. It is cut off. If that fails too, the
// journal is broken and permits no further change.
func (j *Journal) addRecord(r record, sync bool) error {
	if j.broken != nil {
		return j.broken
	}
	return j.gate.pass(func() error { return j.put(r, sync) })
}

func (j *Journal) put(r record, sync bool) error {
	r.Seq = j.seq + 1
	line, err := r.line(j.boot)
	if err == nil {
		err = j.store.Append(line)
	}
	if err == nil && sync {
		err = j.store.Sync()
	}
	if err != nil {
		if cut := j.store.Truncate(j.size); cut != nil {
			j.broken = fmt.Errorf("write journal: %w; nothing is changed any more, restart homenode", errors.Join(err, cut))
		}
		return fmt.Errorf("write journal: %w", err)
	}
	j.seq, j.size = r.Seq, j.size+int64(len(line))
	j.ledger.replay(r)
	j.inCgroups = nil
	return nil
}
