// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"homenode/internal/render"
	"homenode/internal/unit"
)

// String is one line for people: "moved 12 MiB in 40 calls, the longest 3.1 ms;
// not moved: 4 KiB EACCES".
func (r Result) String() string {
	s := fmt.Sprintf("moved %v in %s, the longest %s", r.Moved(), render.Count(r.Calls, "call"), render.Span(r.Longest))
	var why []string
	for _, f := range r.Failures() {
		why = append(why, fmt.Sprintf("%v %s", f.Bytes, f.Reason))
	}
	if len(why) > 0 {
		s += "; not moved: " + strings.Join(why, ", ")
	}
	if r.Stopped != "" {
		s += "; stopped: " + r.Stopped
	}
	return s
}

// Failures are the reasons why pages stayed, over all kinds, descending by bytes.
func (r Result) Failures() []Failure {
	sum := map[string]unit.Bytes{}
	for _, k := range r.Kinds {
		for _, f := range k.Failed {
			sum[f.Reason] += f.Bytes
		}
	}
	var all []Failure
	for reason, b := range sum {
		all = append(all, Failure{reason, b})
	}
	slices.SortFunc(all, func(a, b Failure) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.Reason, b.Reason))
	})
	return all
}
