// SPDX-License-Identifier: Apache-2.0

package unix

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"unsafe"

	sys "golang.org/x/sys/unix"
)

// Peer is the process at the other end of a unix socket, as of when it connected.
type Peer struct {
	PID    int
	UID    uint32
	GID    uint32
	Groups []uint32 // supplementary ones
}

// In reports that the peer is in a group.
func (p Peer) In(gid uint32) bool { return p.GID == gid || slices.Contains(p.Groups, gid) }

// PeerOf asks the kernel, which a peer cannot deceive: SO_PEERCRED (sk_peer_cred in
// net/core/sock.c) and, since 4.13, SO_PEERGROUPS. Where that is missing the peer has no
// supplementary groups here.
func PeerOf(c *net.UnixConn) (Peer, error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return Peer{}, fmt.Errorf("read peer of socket: %w", err)
	}
	var p Peer
	var inner error
	err = raw.Control(func(fd uintptr) {
		var cred *sys.Ucred
		if cred, inner = sys.GetsockoptUcred(int(fd), sys.SOL_SOCKET, sys.SO_PEERCRED); inner != nil {
			return
		}
		p = Peer{PID: int(cred.Pid), UID: cred.Uid, GID: cred.Gid}
		p.Groups = peerGroups(fd)
	})
	if err := errors.Join(err, inner); err != nil {
		return Peer{}, Explain("read", "peer of socket", "", err)
	}
	return p, nil
}

// peerGroups asks twice at most: if the buffer is too small the kernel returns the size
// it needs (sk_getsockopt: ERANGE).
func peerGroups(fd uintptr) []uint32 {
	groups := make([]uint32, 64)
	for range 2 {
		size := uint32(4 * len(groups))
		_, _, errno := sys.Syscall6(sys.SYS_GETSOCKOPT, fd, sys.SOL_SOCKET, sys.SO_PEERGROUPS,
			uintptr(unsafe.Pointer(&groups[0])), uintptr(unsafe.Pointer(&size)), 0)
		switch errno {
		case 0:
			return groups[:size/4]
		case sys.ERANGE:
			groups = make([]uint32, size/4)
		default:
			return nil
		}
	}
	return nil
}

// NoListener reports that connecting to a socket failed because no process listens:
// the socket was left by a killed process.
func NoListener(err error) bool { return errors.Is(err, sys.ECONNREFUSED) }
