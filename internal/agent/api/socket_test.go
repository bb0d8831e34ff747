// SPDX-License-Identifier: Apache-2.0

package api

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"homenode/internal/agent"
)

// A socket on which somebody listens stays theirs, and who closes removes only their own.
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

// Whatever the umask, nobody else may connect at any moment.
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

// Who asks for much over TCP and reads nothing keeps nobody from the socket, nor from
// health over TCP.
func TestSlowReaders(t *testing.T) {
	a := full(t)
	for range 7 { // 256 workloads: an answer that no socket's buffer takes many of
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
	go s.ServePublic(ctx, tcp)
	go s.Serve(ctx, l)
	for range 2 * atOnce {
		c, err := net.Dial("tcp", tcp.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		_ = c.(*net.TCPConn).SetReadBuffer(4096)
		fmt.Fprint(c, strings.Repeat("GET /v1/metrics HTTP/1.1\r\nHost: h\r\n\r\n", 200))
	}
	time.Sleep(time.Second) // until they are stuck
	local := &http.Client{Timeout: 3 * time.Second, Transport: &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return net.Dial("unix", path) }}}
	public := &http.Client{Timeout: 3 * time.Second}
	for target, c := range map[string]*http.Client{"http://homenode/v1/healthz": local, "http://homenode/v1/metrics": local, "http://" + tcp.Addr().String() + "/v1/healthz": public} {
		r, err := c.Get(target)
		if err != nil {
			t.Errorf("%s: %v", target, err)
			continue
		}
		_, _ = io.Copy(io.Discard, r.Body)
		r.Body.Close()
	}
}

// Beyond so many connections there is a hang-up, and room again when one ends.
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
