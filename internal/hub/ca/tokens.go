// SPDX-License-Identifier: Apache-2.0

package ca

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"homenode/internal/kernel/unix"
)

const (
	tokensDir   = "tokens"
	revokedFile = "revoked"
	// TokenLife is how long a token waits for its host.
	TokenLife = 24 * time.Hour
	// mostRevoked bounds the list of revoked hosts, bytes: some 50,000 hosts.
	mostRevoked = 4 << 20
)

// ErrToken is the answer to every token that is not good: unknown, used or too old.
var ErrToken = errors.New("the token is unknown, used or too old: ask for a new one with 'homenode-hub enrol'")

// Token makes a one-time token for a host: a secret, and what its agent compares the hub's
// authority with.
func (a *Authority) Token(host string) (string, error) {
	if err := CheckHost(host); err != nil {
		return "", err
	}
	secret := rand.Text()
	if err := os.MkdirAll(filepath.Join(a.dir, tokensDir), 0o700); err != nil {
		return "", err
	}
	text := host + " " + a.Now().Add(TokenLife).UTC().Format(time.RFC3339) + "\n"
	if err := unix.ReplaceShared(a.tokenFile(secret), []byte(text)); err != nil {
		return "", fmt.Errorf("keep the token: %w", err)
	}
	return secret + "." + Fingerprint(a.cert.Raw), nil
}

func (a *Authority) tokenFile(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return filepath.Join(a.dir, tokensDir, hex.EncodeToString(sum[:]))
}

// Redeem uses a token up and makes the certificate of its host. Of several that come with
// the same token, at the same time and at any replica that shares the folder, one gets it:
// the removal of the file decides.
func (a *Authority) Redeem(token string, request []byte) (host string, der []byte, err error) {
	secret, _, _ := strings.Cut(token, ".")
	file := a.tokenFile(secret)
	text, err := unix.ReadAtMost(file, 4096)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil, ErrToken
	}
	if err != nil {
		return "", nil, err
	}
	host, until, _ := strings.Cut(strings.TrimSpace(string(text)), " ")
	end, err := time.Parse(time.RFC3339, until)
	if err != nil {
		return "", nil, fmt.Errorf("read a token of %s: %w", host, err)
	}
	if a.Now().After(end) {
		_ = os.Remove(file) // it is of no use
		return "", nil, ErrToken
	}
	if der, err = a.Issue(host, request); err != nil {
		return "", nil, err // the token stays: the request was bad
	}
	if err := os.Remove(file); err != nil {
		return "", nil, ErrToken
	}
	return host, der, nil
}

// revoked is the list as it was last read.
type revoked struct {
	size   int64
	time   time.Time
	before map[string]time.Time
}

// Revoke refuses all certificates that a host has now. A later enrolment is good again.
func (a *Authority) Revoke(host string) error {
	if err := CheckHost(host); err != nil {
		return err
	}
	f, err := unix.OpenShared(filepath.Join(a.dir, revokedFile), os.O_APPEND)
	if err != nil {
		return fmt.Errorf("revoke %s: %w", host, err)
	}
	_, err = fmt.Fprintf(f, "%s %s\n", host, a.Now().UTC().Format(time.RFC3339))
	return errors.Join(err, f.Sync(), f.Close())
}

// isRevoked reads the list again if its file has changed.
func (a *Authority) isRevoked(host string, issued time.Time) (bool, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	file := filepath.Join(a.dir, revokedFile)
	st, err := os.Stat(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		a.revoked = revoked{}
		return false, nil
	case err != nil:
		return false, err
	case a.revoked.before == nil || st.Size() != a.revoked.size || !st.ModTime().Equal(a.revoked.time):
		text, err := unix.ReadAtMost(file, mostRevoked)
		if err != nil {
			return false, err
		}
		before, err := parseRevoked(text)
		if err != nil {
			return false, fmt.Errorf("read %s: %w", file, err)
		}
		a.revoked = revoked{st.Size(), st.ModTime(), before}
	}
	until, listed := a.revoked.before[host]
	return listed && !issued.After(until), nil
}

// parseRevoked reads lines "HOST TIME"; the last of a host counts. Empty lines and comments (#) do not.
func parseRevoked(text []byte) (map[string]time.Time, error) {
	all := map[string]time.Time{}
	lines := bufio.NewScanner(bytes.NewReader(text))
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		host, at, _ := strings.Cut(line, " ")
		t, err := time.Parse(time.RFC3339, at)
		if err != nil || CheckHost(host) != nil {
			return nil, fmt.Errorf("line %d %q: want HOST TIME, such as db-7 2026-01-31T12:00:00Z", n, line[:min(len(line), 80)])
		}
		all[host] = t
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	return all, nil
}
