// SPDX-License-Identifier: Apache-2.0

package unix

import (
	"net"
	"path/filepath"
	"testing"
)

func TestNotify(t *testing.T) {
	t.Setenv("NOTIFY_SOCKET", "")
	if err := Notify("READY=1"); err != nil {
		t.Errorf("without systemd: %v", err)
	}
	path := filepath.Join(t.TempDir(), "n")
	t.Setenv("NOTIFY_SOCKET", path)
	if err := Notify("READY=1"); err == nil {
		t.Error("no process listens, and Notify returned no error")
	}
	l, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Skipf("no unix socket here: %v", err)
	}
	defer l.Close()
	if err := Notify("RELOADING=1", "MONOTONIC_USEC=5"); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 100)
	if n, err := l.Read(buf); err != nil || string(buf[:n]) != "RELOADING=1\nMONOTONIC_USEC=5" {
		t.Errorf("%q, %v", buf[:n], err)
	}
}
