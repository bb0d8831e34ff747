// SPDX-License-Identifier: Apache-2.0

package unix

import (
	"errors"
	"fmt"
	"io/fs"

	sys "golang.org/x/sys/unix"
)

// The sentinels of this room. They are always wrapped in a sentence.
var (
	ErrNotSupported = errors.New("not supported")
	ErrNotPermitted = errors.New("not permitted")
	ErrMalformed    = errors.New("malformed")
	ErrGone         = errors.New("gone")
)

// Unsupported is a sentinel of its own that is an ErrNotSupported too.
type Unsupported string

func (u Unsupported) Error() string { return string(u) + " (" + ErrNotSupported.Error() + ")" }

// Unwrap returns ErrNotSupported.
func (u Unsupported) Unwrap() error { return ErrNotSupported }

// Explain wraps err as "verb object: cause" and adds the matching sentinel. need names
// the privilege that was missing when the cause is EPERM or EACCES; "" names none.
func Explain(verb, object, need string, err error) error {
	if err == nil {
		return nil
	}
	kind := Classify(err)
	switch {
	case kind == nil || errors.Is(err, kind):
		return fmt.Errorf("%s %s: %w", verb, object, cause(err))
	case kind == ErrNotPermitted && need != "":
		return fmt.Errorf("%s %s: %w (%w): it needs %s", verb, object, cause(err), kind, need)
	}
	return fmt.Errorf("%s %s: %w (%w)", verb, object, cause(err), kind)
}

// cause drops the path that os errors repeat.
func cause(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

// Classify returns the sentinel for an errno, nil when there is none.
//
// kernfs returns ENODEV for a file whose cgroup was removed while it was open
// (kernfs_get_active in fs/kernfs/file.c).
func Classify(err error) error {
	for _, c := range classes {
		if errors.Is(err, c.errno) {
			return c.kind
		}
	}
	return nil
}

var classes = []struct{ errno, kind error }{
	{ErrGone, ErrGone}, {ErrNotPermitted, ErrNotPermitted}, {ErrNotSupported, ErrNotSupported}, {ErrMalformed, ErrMalformed},
	{sys.ENOENT, ErrGone}, {sys.ENODEV, ErrGone}, {sys.ESRCH, ErrGone},
	{sys.EPERM, ErrNotPermitted}, {sys.EACCES, ErrNotPermitted}, {sys.EROFS, ErrNotPermitted},
	{sys.ENOSYS, ErrNotSupported}, {sys.EOPNOTSUPP, ErrNotSupported},
}
