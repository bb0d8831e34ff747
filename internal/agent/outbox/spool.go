// SPDX-License-Identifier: Apache-2.0

package outbox

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"homenode/internal/wire"
)

// A spool is a folder of segments, NUMBER.spool: the number of its first entry. A segment is
// entries, one after the other:
//
//	bytes 0–3 length of the content · 4–7 CRC-32C of all that follows · 8–15 number · content
//
// Entries are appended, and nothing is ever written over. Each sixth is fsynced with those before
// it: a killed process loses none, a machine without power at most five. A segment goes when all its
// entries are settled, or as the oldest when the budget is used up. Which entries of a segment
// are settled is not on disk: after a restart they are sent again.
const (
	headSize   = 16
	extension  = ".spool"
	leastParts = 8 // segments of a full spool: dropping one drops an eighth
	mostHeld   = 1 << 20
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Why batches were dropped.
const (
	DropBudget  = "budget"  // the spool was full
	DropDisk    = "disk"    // the spool could not be written, and the hub was away for long
	DropDamaged = "damaged" // what was read was not what was written
	DropCutOff  = "cut_off" // a crash ended the write
	DropQueue   = "queue"   // the disk was too slow
	DropTooBig  = "too_big" // it cannot be packed
	DropRefused = "refused" // the hub did not take it
)

// Drops are all of them.
var Drops = []string{DropBudget, DropDisk, DropDamaged, DropCutOff, DropQueue, DropTooBig, DropRefused}

// file is what a segment is written through.
type file interface {
	io.WriteCloser
	Sync() error
	Truncate(size int64) error
}

// Entry is a packed batch.
type Entry struct {
	Seq    uint64 // of this spool: not the batch's number
	Packed []byte
}

// Spool keeps entries in order. It is safe for concurrent use.
type Spool struct {
	dir    string
	budget int64
	create func(path string) (file, error)

	mu       sync.Mutex
	segments []*segment // oldest first
	active   file       // of the last segment; nil: the next entry begins one
	unsynced int        // entries of it that a loss of power may lose
	next     uint64
	held     []Entry // in memory: the disk did not take them
	failing  error

	told   sync.Mutex // of the next: not held while the disk is used, which may hang
	status SpoolStatus
}

// segment is a file. Settled entries are those before from.
type segment struct {
	path       string
	count      uint64 // of its unsettled entries
	last       uint64 // number of its last entry
	from, size int64
}

// OpenSpool reads what an earlier agent left. A damaged entry ends its segment.
func OpenSpool(dir string, budget int64) (*Spool, error) {
	s := &Spool{dir: dir, budget: budget, create: createFile, next: 1, status: SpoolStatus{Dropped: map[string]uint64{}}}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the spool: %w", err)
	}
	names, err := filepath.Glob(filepath.Join(dir, "*"+extension))
	if err != nil {
		return nil, fmt.Errorf("read the spool: %w", err)
	}
	slices.Sort(names)
	for i, name := range names {
		if err := s.load(name, i == len(names)-1); err != nil {
			return nil, fmt.Errorf("read the spool: %w", err)
		}
	}
	s.shrink(0)
	s.tell()
	return s, nil
}

func createFile(path string) (file, error) {
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	dir, err := os.Open(filepath.Dir(path))
	if err == nil {
		err = errors.Join(dir.Sync(), dir.Close())
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

func (s *Spool) load(path string, newest bool) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	seg := &segment{path: path}
	in := bufio.NewReaderSize(f, 64<<10)
	for {
		e, err := readEntry(in, seg.last)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			why := DropDamaged
			if newest && errors.Is(err, io.ErrUnexpectedEOF) {
				why = DropCutOff
			}
			s.Drop(why, 1) // at least one: what cannot be read cannot be counted
			break
		}
		seg.count, seg.last, seg.size = seg.count+1, e.Seq, seg.size+headSize+int64(len(e.Packed))
	}
	if seg.size == 0 {
		return os.Remove(path)
	}
	s.segments = append(s.segments, seg)
	s.next = max(s.next, seg.last+1)
	return nil
}

// errDamaged is an entry that is not as it was written.
var errDamaged = errors.New("damaged entry")

// readEntry reads one entry, whose number is above after. io.EOF: there is none.
func readEntry(r io.Reader, after uint64) (Entry, error) {
	var head [headSize]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return Entry{}, err
	}
	n := binary.LittleEndian.Uint32(head[:])
	if n > wire.MostPacked {
		return Entry{}, errDamaged
	}
	packed := make([]byte, n)
	if _, err := io.ReadFull(r, packed); err != nil {
		return Entry{}, io.ErrUnexpectedEOF // also if the head is all there is
	}
	e := Entry{binary.LittleEndian.Uint64(head[8:]), packed}
	if sum(head[8:], packed) != binary.LittleEndian.Uint32(head[4:]) || e.Seq <= after {
		return Entry{}, errDamaged
	}
	return e, nil
}

func sum(number, packed []byte) uint32 {
	return crc32.Update(crc32.Checksum(number, castagnoli), castagnoli, packed)
}

func encode(e Entry) []byte {
	out := make([]byte, headSize, headSize+len(e.Packed))
	binary.LittleEndian.PutUint32(out, uint32(len(e.Packed)))
	binary.LittleEndian.PutUint64(out[8:], e.Seq)
	binary.LittleEndian.PutUint32(out[4:], sum(out[8:], e.Packed))
	return append(out, e.Packed...)
}

// Add keeps a batch, whose bytes are then its own. Without an error it is on disk. With one it is in memory for now: it
// may be sent, and is written before the next one.
func (s *Spool) Add(packed []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.tell()
	s.held = append(s.held, Entry{s.next, packed})
	s.next++
	for len(s.held) > 0 {
		if s.failing = s.append(s.held[0]); s.failing != nil {
			break
		}
		s.held = s.held[1:]
	}
	bytes := 0
	for i := len(s.held) - 1; i >= 0; i-- {
		if bytes += len(s.held[i].Packed); bytes > mostHeld {
			s.Drop(DropDisk, i+1)
			s.held = s.held[i+1:]
			break
		}
	}
	return s.failing
}

// append writes an entry. After a failure the segment is as before, or ends: what is behind
// a broken entry could not be read.
func (s *Spool) append(e Entry) error {
	data := encode(e)
	s.shrink(int64(len(data)))
	if err := s.open(e.Seq, int64(len(data))); err != nil {
		return fmt.Errorf("write the spool: %w", err)
	}
	seg := s.segments[len(s.segments)-1]
	_, err := s.active.Write(data)
	if s.unsynced++; err == nil && s.unsynced >= sendTogether {
		err, s.unsynced = s.active.Sync(), 0
	}
	if err != nil {
		if s.active.Truncate(seg.size) != nil {
			s.closeActive()
		}
		return fmt.Errorf("write the spool: %w", err)
	}
	seg.count, seg.last, seg.size = seg.count+1, e.Seq, seg.size+int64(len(data))
	return nil
}

// open makes sure that there is a segment with room.
func (s *Spool) open(seq uint64, need int64) error {
	if s.active != nil {
		if seg := s.segments[len(s.segments)-1]; seg.size == 0 || seg.size+need <= s.segmentSize() {
			return nil
		}
		s.closeActive()
	}
	path := filepath.Join(s.dir, fmt.Sprintf("%020d%s", seq, extension))
	f, err := s.create(path)
	if err != nil {
		return err
	}
	s.active = f
	s.segments = append(s.segments, &segment{path: path})
	return nil
}

// closeActive ends the last segment; one without entries goes.
func (s *Spool) closeActive() {
	if s.active == nil {
		return
	}
	if s.unsynced > 0 {
		_ = s.active.Sync() // an error says that it was lost already: reading it will tell
	}
	_ = s.active.Close()
	s.active, s.unsynced = nil, 0
	if n := len(s.segments) - 1; s.segments[n].size == 0 {
		_ = os.Remove(s.segments[n].path)
		s.segments = s.segments[:n]
	}
}

func (s *Spool) segmentSize() int64 { return min(max(s.budget/leastParts, 64<<10), 4<<20) }

// shrink drops the oldest segments until there is room.
func (s *Spool) shrink(need int64) {
	for len(s.segments) > 0 && s.bytes()+need > s.budget {
		if len(s.segments) == 1 {
			s.closeActive()
			if len(s.segments) == 0 {
				return
			}
		}
		s.Drop(DropBudget, int(s.segments[0].count))
		_ = os.Remove(s.segments[0].path)
		s.segments = s.segments[1:]
	}
}

func (s *Spool) bytes() (n int64) {
	for _, seg := range s.segments {
		n += seg.size
	}
	return n
}

// Next returns the oldest entries, up to a number and bytes; at least one if there is any.
func (s *Spool) Next(most, bytes int) (all []Entry, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.tell()
	add := func(e Entry) bool {
		if len(all) > 0 && (len(all) >= most || bytes < len(e.Packed)) {
			return false
		}
		all, bytes = append(all, e), bytes-len(e.Packed)
		return true
	}
	for i := 0; i < len(s.segments); i++ {
		seg := s.segments[i]
		more, err := seg.each(func(e Entry, _ int64) bool { return add(e) })
		if err != nil {
			s.giveUp(seg)
			if len(all) > 0 {
				return all, nil
			}
			i = -1 // giveUp may have removed it
			continue
		}
		if more {
			return all, nil
		}
	}
	for _, e := range s.held {
		if !add(e) {
			break
		}
	}
	return all, nil
}

// each calls f with each unsettled entry and where that ends, until f says false: then there
// are more.
func (seg *segment) each(f func(e Entry, end int64) bool) (more bool, err error) {
	if seg.count == 0 {
		return false, nil
	}
	in, err := os.Open(seg.path)
	if err != nil {
		return false, err
	}
	defer in.Close()
	left := seg.size - seg.from
	r := bufio.NewReaderSize(io.NewSectionReader(in, seg.from, left), int(min(left, 64<<10)))
	at, last := seg.from, uint64(0)
	for last < seg.last {
		e, err := readEntry(r, last)
		if err != nil {
			return false, errDamaged
		}
		at, last = at+headSize+int64(len(e.Packed)), e.Seq
		if !f(e, at) {
			return true, nil
		}
	}
	return false, nil
}

// giveUp forgets what is behind the last good entry of a segment.
func (s *Spool) giveUp(seg *segment) {
	if s.segments[len(s.segments)-1] == seg && s.active != nil {
		_ = s.active.Close()
		s.active = nil
	}
	read, last := uint64(0), uint64(0)
	_, _ = seg.each(func(e Entry, _ int64) bool { read, last = read+1, e.Seq; return true })
	s.Drop(DropDamaged, int(seg.count-read))
	seg.count, seg.last = read, last
	if seg.count == 0 {
		_ = os.Remove(seg.path)
		s.segments = slices.DeleteFunc(s.segments, func(x *segment) bool { return x == seg })
	}
}

// Done forgets the entries up to a number: the hub has them, or will never take them.
func (s *Spool) Done(upto uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.tell()
	s.held = slices.DeleteFunc(s.held, func(e Entry) bool { return e.Seq <= upto })
	for len(s.segments) > 0 && s.segments[0].last <= upto {
		seg := s.segments[0]
		if len(s.segments) == 1 && s.active != nil {
			if s.active.Truncate(0) == nil {
				seg.from, seg.size, seg.count, s.unsynced = 0, 0, 0, 0
				return
			}
			_ = s.active.Close()
			s.active = nil
		}
		_ = os.Remove(seg.path)
		s.segments = s.segments[1:]
	}
	if len(s.segments) == 0 {
		return
	}
	seg := s.segments[0]
	from, settled := seg.from, uint64(0)
	_, _ = seg.each(func(e Entry, end int64) bool { // what cannot be read stays: Next finds it
		if e.Seq <= upto {
			from, settled = end, settled+1
		}
		return e.Seq < upto
	})
	seg.from, seg.count = from, seg.count-settled
}

// Drop counts batches that are lost, or that never came here. It does not wait for the disk.
func (s *Spool) Drop(why string, n int) {
	s.told.Lock()
	defer s.told.Unlock()
	if n > 0 {
		s.status.Dropped[why] += uint64(n)
	}
}

// SpoolStatus is what a spool holds.
type SpoolStatus struct {
	Waiting uint64
	Bytes   int64
	Held    int    // of Waiting: in memory only
	Failing string // why it cannot be written
	Dropped map[string]uint64
}

// Status says what is in it, after the last change. It does not wait for the disk.
func (s *Spool) Status() SpoolStatus {
	s.told.Lock()
	defer s.told.Unlock()
	out := s.status
	out.Dropped = maps.Clone(out.Dropped)
	return out
}

// tell renews the status.
func (s *Spool) tell() {
	out := SpoolStatus{Waiting: uint64(len(s.held)), Bytes: s.bytes(), Held: len(s.held)}
	for _, seg := range s.segments {
		out.Waiting += seg.count
	}
	if s.failing != nil {
		out.Failing = strings.TrimPrefix(s.failing.Error(), "write the spool: ")
	}
	s.told.Lock()
	defer s.told.Unlock()
	out.Dropped = s.status.Dropped
	s.status = out
}

// Close ends the writing.
func (s *Spool) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closeActive()
}
