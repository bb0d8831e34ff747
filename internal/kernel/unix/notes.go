// SPDX-License-Identifier: Apache-2.0

package unix

import "fmt"

// Notes are problems. Of each sort only the first are kept, and the last of these says how
// many more there were. The zero Notes keeps one of each sort.
type Notes struct {
	Most int // of a sort
	all  []string
	of   map[string]*sortOfNotes
}

type sortOfNotes struct{ kept, last, more int }

// Add adds a problem; sort groups similar ones.
func (n *Notes) Add(sort, text string) {
	s := n.of[sort]
	if s == nil {
		s = &sortOfNotes{}
		if n.of == nil {
			n.of = map[string]*sortOfNotes{}
		}
		n.of[sort] = s
	}
	if s.kept == max(1, n.Most) {
		s.more++
		return
	}
	s.kept++
	s.last = len(n.all)
	n.all = append(n.all, text)
}

// All are the problems in the order in which they came.
func (n *Notes) All() []string {
	all := append([]string(nil), n.all...)
	for _, s := range n.of {
		if s.more > 0 {
			all[s.last] += fmt.Sprintf(", and %d more like it", s.more)
		}
	}
	return all
}

// SortOf is a sort of errors: what they are about, and their kind.
func SortOf(what string, err error) string {
	if kind := Classify(err); kind != nil {
		what += kind.Error()
	}
	return what
}
