// SPDX-License-Identifier: Apache-2.0

package query

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"

	"homenode/internal/kernel/unix"
)

// Access says who may ask. The zero value lets nobody in.
type Access struct {
	// Loopback lets every program of this host ask without a password, and a proxy on it. It
	// has to name this host, or one of Names.
	Loopback bool
	Names    []string
	// Tokens are SHA-256 sums of tokens. A program sends one as "Authorization: Bearer TOKEN",
	// a browser as the password of any user.
	Tokens [][sha256.Size]byte
}

// mostTokens bounds the file of tokens.
const mostTokens = 1000

// ParseTokens reads a file of tokens' sums: hexadecimal SHA-256, one a line, and what it is for
// behind it. Lines that begin with # are comments.
func ParseTokens(text []byte, file string) (sums [][sha256.Size]byte, err error) {
	for i, line := range strings.Split(string(text), "\n") {
		fields := strings.Fields(line)
		if len(fields) == 0 || strings.HasPrefix(fields[0], "#") {
			continue
		}
		var sum [sha256.Size]byte
		text, err := hex.DecodeString(fields[0])
		if copy(sum[:], text); err != nil || len(text) != len(sum) {
			return nil, fmt.Errorf("parse %s: line %d: want the SHA-256 of a token as %d hexadecimal digits, as 'printf %%s TOKEN | sha256sum' prints it", file, i+1, 2*sha256.Size)
		}
		if len(sums) == mostTokens {
			return nil, fmt.Errorf("parse %s: line %d: it has more than %d tokens", file, i+1, mostTokens)
		}
		sums = append(sums, sum)
	}
	return sums, nil
}

// TokenSum is what Tokens holds of a token.
func TokenSum(token string) [sha256.Size]byte { return sha256.Sum256([]byte(token)) }

var errAccess = errors.New("not for this client: send a token that the hub's configuration allows, or ask from the hub's own host")

// Allow refuses a request that may not ask.
func (a Access) Allow(r *http.Request) error {
	if a.Loopback && a.fromLoopback(r) || a.knowsToken(r) {
		return nil
	}
	return errAccess
}

// fromLoopback is true of a client on this host that also names this host. A page elsewhere
// could have the browser send requests here under a name of its own (DNS rebinding).
func (a Access) fromLoopback(r *http.Request) bool {
	from, _, err := net.SplitHostPort(r.RemoteAddr)
	ip := net.ParseIP(from)
	if err != nil || ip == nil || !ip.IsLoopback() {
		return false
	}
	name := r.Host
	if host, _, err := net.SplitHostPort(r.Host); err == nil {
		name = host
	}
	return unix.ThisHost(strings.Trim(name, "[]")) || slices.Contains(a.Names, name)
}

func (a Access) knowsToken(r *http.Request) bool {
	token, isBearer := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if _, password, isBasic := r.BasicAuth(); !isBearer && isBasic {
		token = password
	}
	sum, found := TokenSum(token), 0
	for _, t := range a.Tokens {
		found |= subtle.ConstantTimeCompare(sum[:], t[:])
	}
	return token != "" && found == 1
}

// Guard lets only requests through that may ask.
func (a Access) Guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := a.Allow(r); err != nil {
			w.Header().Set("WWW-Authenticate", `Basic realm="homenode: any user, a token as password"`)
			send(w, http.StatusUnauthorized, Failure{Schema, err.Error()})
			return
		}
		next.ServeHTTP(w, r)
	})
}
