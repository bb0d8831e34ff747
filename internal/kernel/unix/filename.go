// SPDX-License-Identifier: Apache-2.0

package unix

import (
	"crypto/sha256"
	"encoding/hex"
	"net/url"
	"strings"
)

// mostFileName is how long a file's name may be that is made of another name.
const mostFileName = 200

// FileName is the name of a file, without its suffix, for what may have any bytes as its name:
// different names have different files, and none begins with a dot.
func FileName(name string) string {
	file := url.PathEscape(name)
	if len(file) > mostFileName || strings.HasPrefix(file, ".") {
		sum := sha256.Sum256([]byte(name))
		file = "sha256-" + hex.EncodeToString(sum[:])
	}
	return file
}
