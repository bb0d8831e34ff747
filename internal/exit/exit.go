// SPDX-License-Identifier: Apache-2.0

package exit

import (
	"errors"
	"io/fs"

	"homenode/internal/journal"
	"homenode/internal/kernel"
)

// Exit codes of every subcommand.
const (
	Done    = 0
	Failed  = 1
	Bad     = 2 // bad input, or something that must be there is not
	Partly  = 3
	Nothing = 4 // nothing to do
)

// Error is an error with its exit code. An empty message prints nothing.
type Error struct {
	Code int
	err  error
}

func (e Error) Error() string {
	if e.err == nil {
		return ""
	}
	return e.err.Error()
}

func (e Error) Unwrap() error { return e.err }

// With gives an error its exit code; without an error nothing is printed.
func With(code int, err error) error { return Error{code, err} }

// BadInput is of what a person can put right.
func BadInput(err error) error {
	if err == nil {
		return nil
	}
	return With(Bad, err)
}

// Precondition gives exit code 2 to what is not there or not allowed.
func Precondition(err error) error {
	for _, e := range []error{kernel.ErrNotSupported, kernel.ErrNotPermitted, journal.ErrLocked, fs.ErrPermission} {
		if errors.Is(err, e) {
			return BadInput(err)
		}
	}
	return err
}
