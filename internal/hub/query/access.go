// SPDX-License-Identifier: Apache-2.0

package query

import (
	"crypto/sha256"
	"crypto/subtle"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"strings"
)

// Access says who may ask. The zero value lets nobody in.
type Access struct {
	// Loopback lets every program of this host ask without a password: for homenode-hub dev.
	Loopback bool
	// Tokens are SHA-256 sums of tokens. A program sends one as "Authorization: Bearer TOKEN",
	// a browser as the password of any user.
	Tokens [][sha256.Size]byte
	// Certificate says whether a client may ask who showed this certificate, which the
	// server's CAs have signed. nil: no certificate is enough.
	Certificate func(*x509.Certificate) bool
}

// TokenSum is what Tokens holds of a token.
func TokenSum(token string) [sha256.Size]byte { return sha256.Sum256([]byte(token)) }

var errAccess = errors.New("not for this client: send a client certificate that may query, or a token of the hub's configuration")

// Allow refuses a request that may not ask.
func (a Access) Allow(r *http.Request) error {
	if a.Loopback && fromLoopback(r) || a.certified(r) || a.knowsToken(r) {
		return nil
	}
	return errAccess
}

// fromLoopback is true of a client on this host that also names this host. A page elsewhere
// could have the browser send requests here under a name of its own (DNS rebinding).
func fromLoopback(r *http.Request) bool {
	from, _, err := net.SplitHostPort(r.RemoteAddr)
	ip := net.ParseIP(from)
	if err != nil || ip == nil || !ip.IsLoopback() {
		return false
	}
	name := r.Host
	if host, _, err := net.SplitHostPort(r.Host); err == nil {
		name = host
	}
	named := net.ParseIP(strings.Trim(name, "[]"))
	return name == "localhost" || named != nil && named.IsLoopback()
}

func (a Access) certified(r *http.Request) bool {
	return a.Certificate != nil && r.TLS != nil && len(r.TLS.VerifiedChains) > 0 && len(r.TLS.PeerCertificates) > 0 && a.Certificate(r.TLS.PeerCertificates[0])
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
