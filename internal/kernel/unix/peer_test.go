// SPDX-License-Identifier: Apache-2.0

package unix

import (
	"net"
	"os"
	"path/filepath"
	"testing"
)

func TestPeerOf(t *testing.T) {
	l, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Skipf("no unix socket here: %v", err)
	}
	defer l.Close()
	client, err := net.Dial("unix", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	c, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	p, err := PeerOf(c.(*net.UnixConn))
	if err != nil || p.PID != os.Getpid() || p.UID != uint32(os.Getuid()) || !p.In(uint32(os.Getgid())) {
		t.Errorf("%+v, %v", p, err)
	}
	own, _ := os.Getgroups()
	for _, g := range own {
		if !p.In(uint32(g)) {
			t.Errorf("not in group %d: %+v", g, p)
		}
	}
	if p.In(4_000_000_001) {
		t.Error("in a group without members")
	}
}
