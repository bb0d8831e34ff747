// SPDX-License-Identifier: Apache-2.0

package unix

import (
	"io/fs"
	"os"
	"path/filepath"
)

// Root is the root of /proc and /sys: "/" on a live host, a directory in tests and for
// recorded trees. Everything is read through one.
type Root struct{ dir string }

// At is a recorded or fake tree. It can be read, never acted upon.
func At(dir string) Root { return Root{dir: dir} }

// Path is the real path of an absolute path inside the tree.
func (r Root) Path(abs string) string { return filepath.Join("/", r.dir, abs) }

// FS is the tree as an fs.FS. A recorded tree's absolute links cannot lead out
// of it to this host's own /sys.
func (r Root) FS() (fs.FS, error) {
	if r.Path("/") == "/" {
		return os.DirFS("/"), nil
	}
	tree, err := newTreeFS(r.Path("/"))
	if err != nil {
		return nil, Explain("open", r.Path("/"), "", err)
	}
	return tree, nil
}

// String names the tree in messages.
func (r Root) String() string { return r.Path("/") }

// Live proves that a value is about the running kernel. Only NewLive makes a valid one,
// so that nothing recorded can ever be actuated: appliers and movers need a Live, readers
// a Root.
type Live struct{ ok bool }

// NewLive is the running kernel.
func NewLive() Live { return Live{ok: true} }

// Valid is false for a Live that did not come from NewLive.
func (l Live) Valid() bool { return l.ok }

// Root is the tree of the running kernel.
func (Live) Root() Root { return Root{dir: "/"} }
