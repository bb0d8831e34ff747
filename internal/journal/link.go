// SPDX-License-Identifier: Apache-2.0

package journal

// Ending is an Owner who remembers by himself what is on record (Remembering), and is
// told when a record ends, so that the two cannot come to differ.
type Ending interface {
	// Ended says that a setting is no concern of ours any more. The record ends only
	// where this did not fail.
	Ended(s Setting) error
}

// Link is an Owner in a chain of owners: it hands on what is not its own. All that an
// owner may know is part of it, so that no link can keep from the journal what one behind
// it knows. It embeds Next.
type Link interface {
	Owner
	Overruled
	Remembering
	Ending
	Inheritable
}

// Next hands on to the owner behind a link what not every owner knows. nil knows nothing.
type Next struct{ Behind Owner }

// Overrules is Overruled's.
func (n Next) Overrules(s Setting, value string) string {
	if o, ok := n.Behind.(Overruled); ok {
		return o.Overrules(s, value)
	}
	return ""
}

// Remembered is Remembering's.
func (n Next) Remembered() ([]Entry, error) {
	if o, ok := n.Behind.(Remembering); ok {
		return o.Remembered()
	}
	return nil, nil
}

// Ended is Ending's.
func (n Next) Ended(s Setting) error {
	if o, ok := n.Behind.(Ending); ok {
		return o.Ended(s)
	}
	return nil
}

// Clock is Inheritable's.
func (n Next) Clock(s Setting) uint64 {
	if o, ok := n.Behind.(Inheritable); ok {
		return o.Clock(s)
	}
	return 0
}

// Original is Inheritable's.
func (n Next) Original(s Setting, value string) string {
	if o, ok := n.Behind.(Inheritable); ok {
		return o.Original(s, value)
	}
	return value
}

// Heirs is Inheritable's.
func (n Next) Heirs(f Family) ([]Heir, error) {
	if o, ok := n.Behind.(Inheritable); ok {
		return o.Heirs(f)
	}
	return nil, nil
}
