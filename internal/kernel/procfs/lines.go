// SPDX-License-Identifier: Apache-2.0

package procfs

import (
	"bytes"
	"errors"
	"fmt"
	"iter"
	"strconv"

	"homenode/internal/kernel/unix"
)

var (
	errNumber = errors.New("not a decimal number")
	errShort  = errors.New("too few fields")
)

// malformed shows file, line number and the text that did not parse.
func malformed(file string, line int, text []byte, cause error) error {
	if len(text) > 60 {
		text = text[:60]
	}
	return fmt.Errorf("parse %s: line %d %q: %w (%w)", file, line, text, cause, unix.ErrMalformed)
}

// lines yields numbered lines without their newline; the last one may lack it.
func lines(data []byte) iter.Seq2[int, []byte] {
	return func(yield func(int, []byte) bool) {
		for n := 1; len(data) > 0; n++ {
			line, rest, _ := bytes.Cut(data, []byte{'\n'})
			if !yield(n, line) {
				return
			}
			data = rest
		}
	}
}

// nextField splits off the first blank-separated field.
func nextField(line []byte) (field, rest []byte) {
	line = bytes.TrimLeft(line, " \t")
	if i := bytes.IndexAny(line, " \t"); i >= 0 {
		return line[:i], line[i+1:]
	}
	return line, nil
}

// number reads a decimal that fits into 63 bits.
func number(b []byte) (uint64, error) {
	if len(b) == 0 || len(b) > 19 {
		return 0, errNumber
	}
	var n uint64
	for _, c := range b {
		if c < '0' || c > '9' {
			return 0, errNumber
		}
		n = n*10 + uint64(c-'0')
	}
	if n > 1<<63-1 {
		return 0, errNumber
	}
	return n, nil
}

func hex(b []byte) (uint64, error) { return strconv.ParseUint(string(b), 16, 64) }
