// SPDX-License-Identifier: Apache-2.0

package unix

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"unsafe"

	sys "golang.org/x/sys/unix"
)

// maxLine bounds a line: one of numa_maps is a path, of 4 KiB usually and each byte escaped
// with four, and 20 bytes for each of 1,024 nodes. A user can make longer paths, folder by
// folder (the kernel prints whatever d_path returns): such a file is not read.
const maxLine = 64 << 10

var errNoNewline = errors.New("no newline at its end: the file is cut off")

// Lines passes each line of a file, numbered from 1 and without its newline, to each
// while reading: nothing of the file is stored. The line is valid until each returns.
// Lines ends with the first error, which calls the file name.
//
// A bigger buffer does not help: seq_file (fs/seq_file.c) returns a page at a time,
// whatever the size of the read.
func (buf *Buffer) Lines(path, name string, b *Budget, each func(n int, line []byte) error) error {
	k := Kept{Path: path}
	if err := k.open(); err != nil {
		return err
	}
	defer k.Close()
	if len(buf.b) == 0 {
		buf.b = make([]byte, 16<<10)
	}
	have, n := 0, 0
	for {
		if have == len(buf.b) {
			buf.b = append(buf.b, make([]byte, have)...)
		}
		before(path)
		m, err := readPart(b, k.fd, buf.b[have:])
		if err == nil {
			err = b.Spend(m)
		}
		if err != nil {
			return &os.PathError{Op: "read", Path: path, Err: err}
		}
		if m == 0 {
			return cutOff(name, n+1, buf.b[:have])
		}
		rest := buf.b[:have+m]
		for {
			i := bytes.IndexByte(rest, '\n')
			if i < 0 {
				break
			}
			n++
			if err := each(n, rest[:i]); err != nil {
				return err
			}
			rest = rest[i+1:]
		}
		if have = copy(buf.b, rest); have > maxLine {
			return fmt.Errorf("parse %s: line %d %q: longer than %d bytes (%w)", name, n+1, rest[:60], maxLine, ErrMalformed)
		}
	}
}

// cutOff describes a last line without a newline: the kernel always ends its lines.
func cutOff(name string, n int, tail []byte) error {
	if len(tail) == 0 {
		return nil
	}
	return fmt.Errorf("parse %s: line %d %q: %w (%w)", name, n, tail[:min(60, len(tail))], errNoNewline, ErrMalformed)
}

// readPart tells the scheduler where there is a budget: then the agent reads, of any
// process. A process that keeps its memory map locked, as within the mmap of a file whose
// FUSE server does not answer, makes this read wait for ever. While Go's scheduler waits
// for this thread, homenode handles no signal and puts nothing back.
func readPart(b *Budget, fd int, into []byte) (int, error) {
	if b == nil {
		return ignoringEINTR(func() (int, error) { return rawRead(fd, into) })
	}
	return ignoringEINTR(func() (int, error) { return sys.Read(fd, into) })
}

// rawRead does not tell the scheduler that it is in the kernel: reading a file of proc is
// work, not waiting. If it did, the scheduler would wake a second thread for every page
// that takes the kernel longer than 20 µs, which cost a tenth of the CPU time.
func rawRead(fd int, into []byte) (int, error) {
	n, _, errno := sys.RawSyscall(sys.SYS_READ, uintptr(fd), uintptr(unsafe.Pointer(&into[0])), uintptr(len(into)))
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}

// Line reads a file of one short line without its newline. proc returns such a file in
// one read, so there is no second read for the end.
func (buf *Buffer) Line(path string) ([]byte, error) {
	k := Kept{Path: path}
	if err := k.open(); err != nil {
		return nil, err
	}
	defer k.Close()
	if len(buf.b) == 0 {
		buf.b = make([]byte, 16<<10)
	}
	n, err := ignoringEINTR(func() (int, error) { return rawRead(k.fd, buf.b) })
	if err != nil {
		return nil, &os.PathError{Op: "read", Path: path, Err: err}
	}
	line, _, _ := bytes.Cut(buf.b[:n], []byte{'\n'})
	return line, nil
}
