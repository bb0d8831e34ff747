// SPDX-License-Identifier: Apache-2.0

package views

import (
	"fmt"
	"io"

	"homenode/internal/kernel/launch"
	"homenode/internal/render"
)

// Segment prints what was set on shared memory.
func Segment(w io.Writer, q launch.SegmentRequest, res launch.SegmentResult) error {
	what, policy := "", string(q.Policy)
	if res.Created {
		what = "made, "
	}
	if !q.Nodes.IsEmpty() {
		policy += " " + q.Nodes.String()
	}
	fmt.Fprintf(w, "%s: %s%v, %s\n", render.Printable(res.Name), what, res.Bytes, policy)
	present, ok := res.Present.Get()
	switch {
	case !ok || present == 0:
	case q.Touch:
		fmt.Fprintf(w, "all its pages exist\n")
	case !q.Move && !q.Strict:
		fmt.Fprintf(w, "%v of it existed and stays where it is: --move moves it\n", present)
	case len(res.Elsewhere) == 0:
		fmt.Fprintf(w, "the %v of it that exist are on nodes %v\n", present, q.Nodes)
	}
	return nil
}
