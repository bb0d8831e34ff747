// SPDX-License-Identifier: Apache-2.0

package unix

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	sys "golang.org/x/sys/unix"
)

// ErrTooLarge: a file that any user can make large is longer than its limit.
var ErrTooLarge = errors.New("too large")

// Budget bounds what is read of files that a user can make large, such as numa_maps: text
// and time. Several files may share one, and one may be a part of another (Within). Time
// is checked between two system calls: the length of one call is up to the kernel.
//
// A nil Budget has no bounds: for a user who asks about one process and can stop waiting.
type Budget struct {
	bytes, left int64
	time        time.Duration
	until       time.Time
	of          *Budget
}

// NewBudget begins now.
func NewBudget(bytes int64, length time.Duration) *Budget {
	return (*Budget)(nil).Within(bytes, length)
}

// Within is a part of a budget: what is spent of it is spent of both.
func (b *Budget) Within(bytes int64, length time.Duration) *Budget {
	return &Budget{bytes: bytes, left: bytes, time: length, until: time.Now().Add(length), of: b}
}

// Spend returns ErrTooLarge once more was read, or more time was used, than the budget
// has.
func (b *Budget) Spend(bytes int) error {
	if b == nil {
		return nil
	}
	b.left -= int64(bytes)
	switch {
	case b.left < 0:
		return fmt.Errorf("more than %d bytes, which is all that is read of it (%w)", b.bytes, ErrTooLarge)
	case time.Now().After(b.until):
		return fmt.Errorf("longer than %v, which is all the time that it is given (%w)", b.time, ErrTooLarge)
	}
	return b.of.Spend(bytes)
}

// pipePatience is how long OpenNamed's reader waits for the next bytes of a pipe or a
// terminal: a program that writes hwloc's XML takes some seconds. Raising it keeps a user
// waiting for a writer that never comes.
const pipePatience = 20 * time.Second

// OpenNamed opens a file that a user names. Reading it does not wait for ever: a FIFO without
// a writer fails after some time, and so does one whose writer is silent.
func OpenNamed(path string) (io.ReadCloser, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|sys.O_NONBLOCK|sys.O_NOCTTY, 0)
	if err != nil {
		return nil, err
	}
	return &named{File: f, patience: pipePatience}, nil
}

type named struct {
	*os.File
	patience time.Duration
	begun    bool // it gave bytes: the end is an end
}

func (n *named) Read(b []byte) (int, error) {
	until := time.Now().Add(n.patience)
	_ = n.SetReadDeadline(until) // a regular file has none, and needs none
	k, err := n.File.Read(b)
	for k == 0 && err == io.EOF && !n.begun && n.isFIFO() && time.Now().Before(until) {
		time.Sleep(5 * time.Millisecond) // its writer has not opened it yet
		k, err = n.File.Read(b)
	}
	silent := errors.Is(err, os.ErrDeadlineExceeded)
	switch {
	case k > 0:
		n.begun = true
	case n.begun && silent:
		err = fmt.Errorf("read %s: its writer was silent for %v: give a regular file", n.Name(), n.patience)
	case silent || !n.begun && err == io.EOF && n.isFIFO():
		err = fmt.Errorf("read %s: no process wrote to it within %v: give a regular file", n.Name(), n.patience)
	}
	return k, err
}

func (n *named) isFIFO() bool {
	info, err := n.Stat()
	return err == nil && info.Mode()&os.ModeNamedPipe != 0
}

// ReadAtMost reads a file that a user names, of at most so many bytes, as OpenNamed does.
func ReadAtMost(path string, most int64) ([]byte, error) {
	f, err := OpenNamed(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readAtMost(f, path, most)
}

// MostWord bounds a file that has one word, bytes.
const MostWord = 16 << 10

// ReadWord reads a file that a user names and that has one word of printable ASCII, such as a token.
func ReadWord(path string) (string, error) {
	data, err := ReadAtMost(path, MostWord)
	if err != nil {
		return "", err
	}
	word := strings.TrimSpace(string(data))
	if word == "" || strings.ContainsFunc(word, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "", fmt.Errorf("read %s: it is empty, or has more than a word: want one word", path)
	}
	return word, nil
}

func readAtMost(f io.Reader, path string, most int64) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(data)) > most {
		err = &os.PathError{Op: "read", Path: path, Err: fmt.Errorf("more than %d bytes: that is not a file of this kind (%w)", most, ErrTooLarge)}
	}
	if err != nil {
		return nil, err
	}
	return data, nil
}

// Head reads the first bytes of a kernel file of any length, such as cmdline.
func (buf *Buffer) Head(path string, most int) ([]byte, error) {
	k := Kept{Path: path}
	if err := k.open(); err != nil {
		return nil, err
	}
	defer k.Close()
	if len(buf.b) < most {
		buf.b = make([]byte, most)
	}
	n := 0
	for n < most {
		before(path)
		m, err := ignoringEINTR(func() (int, error) { return sys.Pread(k.fd, buf.b[n:most], int64(n)) })
		if err != nil {
			return nil, &os.PathError{Op: "read", Path: path, Err: err}
		}
		if m == 0 {
			break
		}
		n += m
	}
	return buf.b[:n], nil
}
