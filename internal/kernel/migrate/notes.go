// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"fmt"

	"homenode/internal/kernel/unix"
)

// alike counts problems of one sort, of which only the first are reported one by one.
type alike struct {
	last int // in Problems
	told int
	more int
}

const mostAlike = 3

// problem reports something; sort groups similar problems.
func (r *run) problem(sort, format string, args ...any) {
	a := r.alike[sort]
	if a == nil {
		a = &alike{}
		r.alike[sort] = a
	}
	if a.told == mostAlike {
		a.more++
		return
	}
	a.told++
	a.last = len(r.res.Problems)
	r.res.Problems = append(r.res.Problems, fmt.Sprintf(format, args...))
}

// note is problem for a worker that does not hold the lock.
func (r *run) note(sort, format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.problem(sort, format, args...)
}

// sortOf is alike for errors of one kind.
func sortOf(what string, err error) string {
	if kind := unix.Classify(err); kind != nil {
		what += kind.Error()
	}
	return what
}

// sum appends how many more there were of each sort.
func (r *run) sum() {
	for _, a := range r.alike {
		if a.more > 0 {
			r.res.Problems[a.last] += fmt.Sprintf(", and %d more like it", a.more)
			a.more = 0
		}
	}
}
