// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"

	"homenode/internal/kernel/unix"
)

// Limits of connections. Root's over the socket are not counted, so that no other user
// keeps root out. The counters and the journal need descriptors, too.
const (
	mostLocal  = 64
	mostPublic = 16
	mostOfUser = 16 // of one user over the socket: no user keeps the others of the group out
)

// limited is a listener that closes new connections where there are too many: a queue
// would make other clients wait.
type limited struct {
	net.Listener
	most int64

	mu     sync.Mutex
	open   int64
	ofUser map[uint32]int // over a unix socket
}

func limit(l net.Listener, most int64) net.Listener {
	return &limited{Listener: l, most: most, ofUser: map[uint32]int{}}
}

// admit reports whether there is room, and returns how to give it back.
func (l *limited) admit(uid uint32, known bool) (leave func(), ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open >= l.most || known && l.ofUser[uid] >= mostOfUser {
		return nil, false
	}
	l.open++
	if known {
		l.ofUser[uid]++
	}
	return sync.OnceFunc(func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.open--
		if l.ofUser[uid]--; l.ofUser[uid] <= 0 {
			delete(l.ofUser, uid)
		}
	}), true
}

// Accept returns the next connection that there is room for.
func (l *limited) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		p, known := peerOf(c)
		if known && p.UID == 0 {
			return c, nil
		}
		if leave, ok := l.admit(p.UID, known); ok {
			return &countedConn{Conn: c, done: leave}, nil
		}
		c.Close()
	}
}

type countedConn struct {
	net.Conn
	done func()
}

// Close may be called several times.
func (c *countedConn) Close() error {
	c.done()
	return c.Conn.Close()
}

// peerOf is the peer of a connection; false if it is no unix socket, or the kernel does
// not report it.
func peerOf(c net.Conn) (unix.Peer, bool) {
	if counted, ok := c.(*countedConn); ok {
		c = counted.Conn
	}
	u, ok := c.(*net.UnixConn)
	if !ok {
		return unix.Peer{}, false
	}
	p, err := unix.PeerOf(u)
	return p, err == nil
}

const (
	// atOnce bounds how many answers are made in parallel: each holds a status as text,
	// some 300 kB for 50 workloads.
	atOnce = 4
	// mostHeld bounds the finished answers that wait for slow readers. Small ones are
	// always sent: health, and the result of a reload.
	mostHeld  = 16 << 20
	smallHeld = 64 << 10
)

// door is what the requests of one listener share. A slow reader holds memory, but no
// slot, and nothing of another listener's.
type door struct {
	slots chan struct{}
	held  atomic.Int64
}

func newDoor() *door { return &door{slots: make(chan struct{}, atOnce)} }

// make makes an answer in a slot (slots nil: without one); nil: the client is gone.
func (d *door) make(ctx context.Context, slots chan struct{}, answer func(http.ResponseWriter)) *made {
	if slots != nil {
		select {
		case slots <- struct{}{}:
			defer func() { <-slots }()
		case <-ctx.Done():
			return nil
		}
	}
	got := &made{header: http.Header{}}
	answer(got)
	return got
}

// send takes as long as the reader does.
func (d *door) send(w http.ResponseWriter, got *made) {
	size := int64(got.body.Len())
	defer d.held.Add(-size)
	if held := d.held.Add(size); held > mostHeld && held > size && size > smallHeld {
		w.Header().Set("Content-Type", jsonMedia)
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = io.WriteString(w, `{"error":"too many answers wait for slow readers: ask again"}`+"\n")
		return
	}
	for name, values := range got.header {
		w.Header()[name] = values
	}
	if got.code != 0 {
		w.WriteHeader(got.code)
	}
	_, _ = w.Write(got.body.Bytes()) // the client may be gone
}

// made is an answer before it is sent.
type made struct {
	header http.Header
	code   int
	body   bytes.Buffer
}

func (m *made) Header() http.Header         { return m.header }
func (m *made) Write(p []byte) (int, error) { return m.body.Write(p) }
func (m *made) WriteHeader(code int) {
	if m.code == 0 {
		m.code = code
	}
}
