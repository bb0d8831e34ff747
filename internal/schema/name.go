// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// byBytes begins the name of a cgroup that is no text. No path of a cgroup begins so.
const byBytes = "bytes:"

// Name is a cgroup's path as JSON can hold it: itself if it is text. A cgroup's name may have
// any byte but "/" and NUL, and encoding/json makes one mark of all that is not UTF-8, so that
// two cgroups would look alike. Such a path is bytes:/demo/a\xff, with a backslash as \\.
func Name(path string) string {
	if utf8.ValidString(path) {
		return path
	}
	var out strings.Builder
	out.WriteString(byBytes)
	for len(path) > 0 {
		r, size := utf8.DecodeRuneInString(path)
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&out, `\x%02x`, path[0])
		case r == '\\':
			out.WriteString(`\\`)
		default:
			out.WriteString(path[:size])
		}
		path = path[size:]
	}
	return out.String()
}

// IsName says that a text is a path or the name of one, and no other way to say which.
func IsName(text string) bool {
	return strings.HasPrefix(text, "/") || strings.HasPrefix(text, byBytes)
}
