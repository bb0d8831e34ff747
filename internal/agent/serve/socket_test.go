// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"homenode/internal/agent"
)

// A socket on which another process listens stays theirs, and Close removes only its own.
func TestSocketOfSomebodyElse(t *testing.T) {
	path := filepath.Join(t.TempDir(), "api.sock")
	l, err := Listen(agent.APIConfig{Socket: path})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Listen(agent.APIConfig{Socket: path}); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("a socket that lives was taken: %v", err)
	}
	if c, err := net.Dial("unix", path); err != nil {
		t.Errorf("it is gone: %v", err)
	} else {
		c.Close()
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	next, err := Listen(agent.APIConfig{Socket: path})
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	if _, err := os.Stat(path); err != nil {
		t.Errorf("the other's was removed: %v", err)
	}
	next.Close()
	if left, _ := filepath.Glob(path + "*"); left != nil {
		t.Errorf("left: %q", left)
	}
}

// Whatever the umask, no other user may connect at any moment.
func TestSocketUmask(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0))
	path := filepath.Join(t.TempDir(), "api.sock")
	l, err := listenAs(path, -1, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if st, err := os.Stat(path); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", st, err)
	}
}

// A client that asks for much over TCP and reads nothing blocks neither the socket nor
// health over TCP.
func TestSlowReaders(t *testing.T) {
	a := full(t)
	for range 7 { // 256 workloads: socket buffers hold only a few such answers
		a.view.Status.Workloads = append(a.view.Status.Workloads, a.view.Status.Workloads...)
	}
	a.view.MaxWorkloads = 10_000
	s := serverOf(t, a)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Skipf("no TCP here: %v", err)
	}
	path := filepath.Join(t.TempDir(), "api.sock")
	l, err := Listen(agent.APIConfig{Socket: path})
	if err != nil {
		t.Fatal(err)
	}
	d := newDoor()
	h, asked := s.public(d), atomic.Int64{}
	counted := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { asked.Add(1); h.ServeHTTP(w, r) })
	go s.serve(ctx, limit(tcp, mostPublic), counted, 5*time.Minute) // after which the stuck are freed
	go s.Serve(ctx, l)
	for range 2 * atOnce {
		c, err := net.Dial("tcp", tcp.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		_ = c.(*net.TCPConn).SetReadBuffer(4096)
		fmt.Fprint(c, strings.Repeat("GET /metrics HTTP/1.1\r\nHost: h\r\n\r\n", 200))
	}
	size := int64(ask(s, s.public(newDoor()), nil, "GET", "/metrics").Body.Len())
	waitStuck(t, d, &asked, 2*atOnce*size-size/2)
	local := &http.Client{Timeout: time.Minute, Transport: &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return net.Dial("unix", path) }}}
	public := &http.Client{Timeout: time.Minute}
	for target, c := range map[string]*http.Client{"http://homenode/v1/healthz": local, "http://homenode/metrics": local, "http://" + tcp.Addr().String() + "/v1/healthz": public} {
		r, err := c.Get(target)
		if err != nil {
			t.Errorf("%s: %v", target, err)
			continue
		}
		_, _ = io.Copy(io.Discard, r.Body)
		r.Body.Close()
	}
}

// waitStuck waits until so much is held, and no reader has asked again for a second.
func waitStuck(t *testing.T, d *door, asked *atomic.Int64, held int64) {
	t.Helper()
	began, since, last := time.Now(), time.Now(), int64(-1)
	for ; time.Since(since) < time.Second; time.Sleep(10 * time.Millisecond) {
		if n := asked.Load(); n != last || d.held.Load() < held {
			since, last = time.Now(), n
		}
		if time.Since(began) > 3*time.Minute {
			t.Fatalf("%d asked, %d bytes are held, want %d", last, d.held.Load(), held)
		}
	}
}

// Above the limit a connection is closed at once, and there is room again when another
// ends.
func TestMostConnections(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Skipf("no TCP here: %v", err)
	}
	l = limit(l, 1)
	defer l.Close()
	got := make(chan net.Conn, 3)
	go func() {
		for c, err := l.Accept(); err == nil; c, err = l.Accept() {
			got <- c
		}
	}()
	dial := func() net.Conn {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	defer dial().Close()
	first := <-got
	second := dial()
	if _, err := second.Read(make([]byte, 1)); err == nil {
		t.Error("a second one was let in")
	}
	first.Close()
	first.Close()
	defer dial().Close()
	select {
	case <-got:
	case <-time.After(5 * time.Second):
		t.Error("no room after the first one ended")
	}
}

// A group that does not exist is said as --check says it.
func TestListenUnknownGroup(t *testing.T) {
	_, err := Listen(agent.APIConfig{Socket: filepath.Join(t.TempDir(), "s"), Group: "nosuchgroup"})
	if want := `api.group: the group "nosuchgroup" does not exist: make it ('groupadd --system nosuchgroup'), or remove the setting`; err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}
