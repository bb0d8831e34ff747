// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"testing"
)

func TestContextSwitches(t *testing.T) {
	for _, c := range []struct {
		stat string
		want uint64
		ok   bool
	}{
		{"cpu  1 2 3\nintr 5 0\nctxt 1234567\nbtime 7\n", 1234567, true},
		{"ctxt 0\n", 0, true},
		{"cpu  1 2 3\n", 0, false},
		{"", 0, false},
		{"ctxt many\n", 0, false},
	} {
		if n, err := contextSwitches([]byte(c.stat)); n != c.want || (err == nil) != c.ok {
			t.Errorf("%q: %d, %v", c.stat, n, err)
		}
	}
}

// fakeCounters answers n for file n, fails for 0, and answers nothing for 99.
type fakeCounters struct{}

func (fakeCounters) Read(fd int, words []uint64) (int, error) {
	switch fd {
	case 0:
		return 0, errors.New("bad file descriptor")
	case 99:
		return 0, nil
	}
	words[0] = uint64(fd)
	return 1, nil
}

// A counter that cannot be read is an error, and not 0.
func TestSumCounters(t *testing.T) {
	if n, err := sumCounters(fakeCounters{}, []int{3, 4}); n != 7 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	for _, files := range [][]int{{3, 0}, {99}} {
		if n, err := sumCounters(fakeCounters{}, files); err == nil {
			t.Errorf("%v: %d", files, n)
		}
	}
}
