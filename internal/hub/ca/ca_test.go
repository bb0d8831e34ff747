// SPDX-License-Identifier: Apache-2.0

package ca

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

func authority(t *testing.T) *Authority {
	t.Helper()
	a, err := Open(filepath.Join(t.TempDir(), "ca"), true)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func pair(t *testing.T, a *Authority, host string) tls.Certificate {
	t.Helper()
	text, err := a.Pair(host)
	if err != nil {
		t.Fatal(err)
	}
	p, err := tls.X509KeyPair(text, text)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// A host is the name of its certificate, until that ends or is revoked.
func TestHost(t *testing.T) {
	a, other := authority(t), authority(t)
	p := pair(t, a, "db-7")
	if host, err := a.Host(p.Leaf); err != nil || host != "db-7" {
		t.Fatal(host, err)
	}
	if _, err := other.Host(p.Leaf); !errors.Is(err, ErrUnknown) {
		t.Errorf("another authority: %v", err)
	}
	own, err := a.Server([]string{"hub.example"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.Host(own.Leaf); !errors.Is(err, ErrUnknown) {
		t.Errorf("the hub's own certificate as a host's: %v", err)
	}
	a.Now = func() time.Time { return time.Now().Add(HostLife + time.Hour) }
	if _, err := a.Host(p.Leaf); !errors.Is(err, ErrExpired) {
		t.Errorf("after its end: %v", err)
	}
}

// The list counts without a restart, and until a later enrolment.
func TestRevoke(t *testing.T) {
	a := authority(t)
	now := time.Now()
	a.Now = func() time.Time { return now }
	p := pair(t, a, "db-7")
	now = now.Add(time.Minute)
	again, err := Open(a.dir, false) // another replica
	if err != nil {
		t.Fatal(err)
	}
	if _, err := again.Host(p.Leaf); err != nil {
		t.Fatal(err)
	}
	if err := a.Revoke("db-7"); err != nil {
		t.Fatal(err)
	}
	if _, err := again.Host(p.Leaf); !errors.Is(err, ErrRevoked) {
		t.Errorf("revoked: %v", err)
	}
	now = now.Add(time.Minute)
	if _, err := a.Host(pair(t, a, "db-7").Leaf); err != nil {
		t.Errorf("enrolled again: %v", err)
	}
	if _, err := a.Host(pair(t, a, "db-8").Leaf); err != nil {
		t.Errorf("another host: %v", err)
	}
	if err := os.WriteFile(filepath.Join(a.dir, revokedFile), []byte("nonsense\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Host(p.Leaf); !errors.Is(err, ErrRevoked) {
		t.Errorf("a list that cannot be read lets hosts in: %v", err)
	}
}

// Of many that come with one token, one gets the certificate.
func TestTokenIsForOne(t *testing.T) {
	a := authority(t)
	token, err := a.Token("db-7")
	if err != nil {
		t.Fatal(err)
	}
	request := requestOf(t)
	var got atomic.Int32
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			if _, _, err := a.Redeem(token, request); err == nil {
				got.Add(1)
			} else if !errors.Is(err, ErrToken) {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if got.Load() != 1 {
		t.Errorf("%d certificates for one token", got.Load())
	}
	late, err := a.Token("db-8")
	if err != nil {
		t.Fatal(err)
	}
	a.Now = func() time.Time { return time.Now().Add(TokenLife + time.Minute) }
	for _, bad := range []string{late, "", "x", "../../ca-key.pem", strings.Repeat("x", 1<<16)} {
		if _, _, err := a.Redeem(bad, request); !errors.Is(err, ErrToken) {
			t.Errorf("%.20q: %v", bad, err)
		}
	}
}

func TestBadRequests(t *testing.T) {
	a := authority(t)
	for _, host := range []string{"", "a b", "-a", "a/b", strings.Repeat("a", 254), "a\n"} {
		if _, err := a.Issue(host, requestOf(t)); err == nil {
			t.Errorf("a certificate for %q", host)
		}
	}
	if _, err := a.Issue("db-7", []byte("no request")); err == nil {
		t.Error("a certificate for nothing")
	}
}

func FuzzRevoked(f *testing.F) {
	f.Add([]byte("db-7 2026-01-31T12:00:00Z\n# comment\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		if all, err := parseRevoked(text); err != nil && all != nil {
			t.Errorf("an error and a list: %v", err)
		}
	})
}

func requestOf(t *testing.T) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	request, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, key)
	if err != nil {
		t.Fatal(err)
	}
	return request
}

// Root enrols and revokes hosts of a hub that runs as another user: it must be able to read what
// root wrote.
func TestFilesAreTheHubs(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("it is about what root writes: run it as root")
	}
	const user = 12345
	a := authority(t)
	dir := a.dir
	for _, path := range []string{dir, filepath.Join(dir, tokensDir)} {
		if err := os.Chown(path, user, user); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := a.Token("db-7"); err != nil {
		t.Fatal(err)
	}
	if err := a.Revoke("db-7"); err != nil {
		t.Fatal(err)
	}
	tokens, err := filepath.Glob(filepath.Join(dir, tokensDir, "*"))
	if err != nil || len(tokens) != 1 {
		t.Fatalf("%q, %v", tokens, err)
	}
	for _, file := range append(tokens, filepath.Join(dir, revokedFile)) {
		st, err := os.Stat(file)
		if err != nil {
			t.Fatal(err)
		}
		if owner := st.Sys().(*syscall.Stat_t); owner.Uid != user || owner.Gid != user || st.Mode().Perm() != 0o600 {
			t.Errorf("%s is of user %d, group %d, mode %v", file, owner.Uid, owner.Gid, st.Mode())
		}
	}
}
