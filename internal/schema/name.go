// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"fmt"
	"strconv"
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

// Path is the path that has this name. What is no name is returned as it is: Name(Path(text))
// is text, whatever the text, and Path(Name(path)) is path, which begins with a slash.
func Path(name string) string {
	rest, ok := strings.CutPrefix(name, byBytes)
	if !ok {
		return name
	}
	path := make([]byte, 0, len(rest))
	for rest != "" {
		switch {
		case strings.HasPrefix(rest, `\\`):
			path, rest = append(path, '\\'), rest[2:]
		case strings.HasPrefix(rest, `\x`) && len(rest) >= 4:
			b, err := strconv.ParseUint(rest[2:4], 16, 8)
			if err != nil {
				return name
			}
			path, rest = append(path, byte(b)), rest[4:]
		default:
			path, rest = append(path, rest[0]), rest[1:]
		}
	}
	if Name(string(path)) != name {
		return name
	}
	return string(path)
}

// IsName says that a text is a path or the name of one, and no other way to say which.
func IsName(text string) bool {
	return strings.HasPrefix(text, "/") || strings.HasPrefix(text, byBytes)
}
