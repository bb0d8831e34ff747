// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"time"

	"homenode/internal/agent"
	"homenode/internal/kernel/unix"
)

// Listen makes the socket: for root, and for the group if one is configured. A socket
// that a killed agent left is replaced: no process answers there. If one does, it is
// another agent, or another program.
func Listen(c agent.APIConfig) (net.Listener, error) {
	gid, mode := -1, fs.FileMode(0o600)
	if c.Group != "" {
		var err error
		if gid, err = agent.GroupID(c.Group); err != nil {
			return nil, fmt.Errorf("api.group: %w", err)
		}
		mode = 0o660
	}
	if err := os.MkdirAll(filepath.Dir(c.Socket), 0o755); err != nil {
		return nil, fmt.Errorf("api: %w", err)
	}
	if err := removeDead(c.Socket); err != nil {
		return nil, fmt.Errorf("api: %w", err)
	}
	l, err := listenAs(c.Socket, gid, mode)
	if err != nil {
		return nil, fmt.Errorf("api: %w", err)
	}
	return l, nil
}

// removeDead removes a socket only if the kernel says that no process listens on it.
func removeDead(path string) error {
	st, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case st.Mode()&fs.ModeSocket == 0:
		return fmt.Errorf("%s is there already and no socket: name another one", path)
	}
	c, err := net.DialTimeout("unix", path, time.Second)
	if err == nil {
		c.Close()
		return fmt.Errorf("listen on %s: another process uses it: name another socket", path)
	}
	if !unix.NoListener(err) {
		return fmt.Errorf("%s is there already, and whose it is is not known: %w", path, err)
	}
	return os.Remove(path)
}

// listenAs sets the owner before any process can connect, whatever the umask: it makes
// the socket in a folder that only its owner may enter.
func listenAs(path string, gid int, mode fs.FileMode) (net.Listener, error) {
	room := path + ".new"
	first := filepath.Join(room, "s")
	_ = os.Remove(first) // left by a process that was killed here
	_ = os.Remove(room)
	if err := os.Mkdir(room, 0o700); err != nil {
		return nil, err
	}
	defer os.Remove(room)
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: first, Net: "unix"})
	if err != nil {
		return nil, err
	}
	l.SetUnlinkOnClose(false)
	made, err := give(first, gid, mode)
	if err == nil {
		err = os.Rename(first, path)
	}
	if err != nil {
		l.Close()
		_ = os.Remove(first)
		return nil, err
	}
	return &socket{UnixListener: l, path: path, made: made}, nil
}

func give(path string, gid int, mode fs.FileMode) (fs.FileInfo, error) {
	if gid >= 0 {
		if err := os.Chown(path, -1, gid); err != nil {
			return nil, err
		}
	}
	if err := os.Chmod(path, mode); err != nil {
		return nil, err
	}
	return os.Lstat(path)
}

// socket removes its own name when it closes, and no other's.
type socket struct {
	*net.UnixListener
	path string
	made fs.FileInfo
}

// Close may be called several times.
func (s *socket) Close() error {
	if now, err := os.Lstat(s.path); err == nil && os.SameFile(now, s.made) {
		_ = os.Remove(s.path)
	}
	return s.UnixListener.Close()
}
