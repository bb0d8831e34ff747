// SPDX-License-Identifier: Apache-2.0

package decisions

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"homenode/internal/unit"
)

// FileOptions are the options of a file.
type FileOptions struct {
	Path string
	Max  unit.Bytes // size of one file; a longer line gets a file to itself
	Keep int        // older files beside it, Path.1 … Path.Keep
	// Group may read it, besides its owner; 0: only the owner may.
	Group int
	// Fresh begins a new file, even if there is one already.
	Fresh bool
	// Head writes what each file begins with; nil: no head.
	Head func(io.Writer) error
}

// File is an open file. It is not safe for concurrent use.
type File struct {
	o    FileOptions
	f    *os.File
	size int64
	torn bool // the file does not end with a newline
}

// OpenFile opens the file for appending, and makes its folder.
func OpenFile(o FileOptions) (*File, error) {
	if err := os.MkdirAll(filepath.Dir(o.Path), 0o755); err != nil {
		return nil, fmt.Errorf("open %s: %w", o.Path, err)
	}
	f := &File{o: o}
	if o.Fresh {
		if st, err := os.Stat(o.Path); err == nil && st.Size() > 0 {
			return f, f.rotate()
		}
	}
	return f, f.open()
}

func (f *File) open() error {
	file, err := os.OpenFile(f.o.Path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o640)
	if err != nil {
		return fmt.Errorf("open %s: %w", f.o.Path, cause(err))
	}
	st, err := file.Stat()
	if err == nil && !st.Mode().IsRegular() {
		err = errors.New("it is not a regular file")
	}
	if err != nil {
		file.Close()
		return fmt.Errorf("open %s: %w", f.o.Path, cause(err))
	}
	if f.o.Group > 0 { // if chown is refused, fewer users may read it: no reason to lose lines
		_ = file.Chown(-1, f.o.Group)
	}
	f.f, f.size = file, st.Size()
	f.torn = f.size > 0 && !endsLine(file, f.size)
	if f.size > 0 || f.o.Head == nil {
		return nil
	}
	if err := f.o.Head(appender{f}); err != nil {
		f.drop()
		return err
	}
	return nil
}

// drop empties a file with no head or half a head: no line must follow that. The next
// write begins the file again.
func (f *File) drop() {
	_ = f.f.Truncate(0) // what stays is at most a head, which readers do not take for lines
	f.f.Close()
	f.f, f.size, f.torn = nil, 0, false
}

// endsLine: a crash of the machine may have left half a line.
func endsLine(file *os.File, size int64) bool {
	last := []byte{0}
	_, err := file.ReadAt(last, size-1)
	return err == nil && last[0] == '\n'
}

// Write appends one whole line, which ends with its newline. If the line does not
// fit, the part that was written is removed.
func (f *File) Write(line []byte) (int, error) {
	if f.f == nil { // an earlier rotation failed
		if err := f.open(); err != nil {
			return 0, err
		}
	}
	if f.size > 0 && f.size+int64(len(line)) > int64(f.o.Max) {
		if err := f.rotate(); err != nil {
			return 0, err
		}
	}
	return f.append(line)
}

// appender writes the head, without regard to sizes.
type appender struct{ f *File }

func (a appender) Write(p []byte) (int, error) { return a.f.append(p) }

func (f *File) append(line []byte) (int, error) {
	if f.torn {
		line = append([]byte{'\n'}, line...)
	}
	n, err := f.f.Write(line)
	if err != nil {
		if back := f.f.Truncate(f.size); back != nil {
			f.torn = n > 0
			f.size += int64(n)
		}
		return 0, fmt.Errorf("write %s: %w", f.o.Path, cause(err))
	}
	f.size += int64(n)
	f.torn = false
	return n, nil
}

// rotate makes room for a new file. The oldest file is removed.
func (f *File) rotate() error {
	if f.f != nil {
		f.f.Close()
		f.f = nil
	}
	if f.o.Keep < 1 {
		if err := os.Remove(f.o.Path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("rotate %s: %w", f.o.Path, cause(err))
		}
		return f.open()
	}
	for i := f.o.Keep; i > 0; i-- {
		if err := os.Rename(OlderFile(f.o.Path, i-1), OlderFile(f.o.Path, i)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("rotate %s: %w", f.o.Path, err)
		}
	}
	return f.open()
}

// OlderFile is the name of the i-th older file. For 0 it is the file itself.
func OlderFile(path string, i int) string {
	if i == 0 {
		return path
	}
	return path + "." + strconv.Itoa(i)
}

// Close closes the file.
func (f *File) Close() error {
	if f == nil || f.f == nil {
		return nil
	}
	err := f.f.Close()
	f.f = nil
	return err
}

// cause drops the path, which os errors repeat.
func cause(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}
