// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"homenode/internal/kernel"
	"homenode/internal/yamlfile"
)

// wrong is a mistake in a configuration, at its key.
type wrong struct{ path, text string }

// wrongs collects all of them.
type wrongs []wrong

func (w *wrongs) at(path, format string, args ...any) {
	*w = append(*w, wrong{path, fmt.Sprintf(format, args...)})
}

// oneOf refuses a word that is none of the valid ones.
func (w *wrongs) oneOf(path, got string, valid ...string) {
	if slices.Contains(valid, got) {
		return
	}
	near := yamlfile.Nearest(got, valid)
	if near != "" {
		near = ": did you mean " + near + "?"
	}
	w.at(path, "it is %q: want %s or %s%s", got, strings.Join(valid[:len(valid)-1], ", "), valid[len(valid)-1], near)
}

// sectionKey is how the errors of mao.Config and actuate.Config begin: "mao: isolate.after is …".
var sectionKey = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^(mao|actuate): ([a-z_.0-9\[\]]+) (is .*)$`) })

// of adds the errors of a section. Each names its key.
func (w *wrongs) of(err error) {
	if err == nil {
		return
	}
	for line := range strings.SplitSeq(err.Error(), "\n") {
		if m := sectionKey().FindStringSubmatch(line); m != nil {
			w.at(m[1]+"."+m[2], "it %s", m[3])
			continue
		}
		w.at("", "%s", line)
	}
}

// in is the mistake at its line in the last layer that has the key, or its nearest part.
func (w wrong) in(docs []*yamlfile.Document, name string) error {
	for near := w.path; near != ""; near = near[:max(0, strings.LastIndexAny(near, ".["))] {
		for _, d := range slices.Backward(docs) {
			if d.Wrote(near) {
				return d.Wrong(w.path, w.text)
			}
		}
	}
	return fmt.Errorf("parse %s: %w: %s", name, kernel.ErrMalformed, strings.TrimPrefix(w.path+": "+w.text, ": "))
}

// withoutFollowers drops what is wrong at a key that is wrong already: after a value of
// the wrong type the default, or zero, is checked in its place. They are in the order of
// the lines.
func withoutFollowers(err error) error {
	seen := map[string]bool{}
	var all []error
	problems := yamlfile.Problems(err)
	slices.SortStableFunc(problems, func(a, b *yamlfile.Problem) int { return cmp.Compare(a.Line, b.Line) })
	for _, p := range problems {
		if key := fmt.Sprint(p.Path, " ", p.Line); p.Path == "" || p.Line == 0 || !seen[key] {
			seen[key] = true
			all = append(all, error(p))
		}
	}
	return errors.Join(all...)
}
