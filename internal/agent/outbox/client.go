// SPDX-License-Identifier: Apache-2.0

package outbox

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"connectrpc.com/connect"

	"homenode/internal/kernel/unix"
	"homenode/internal/wire/wirepb"
)

const (
	mostPEM   = 1 << 20
	mostReply = 4 << 20
	dialLimit = 10 * time.Second
)

// newClient has one connection. The host's certificate is read for each new one, so a
// renewed one needs no restart.
func newClient(c Config) (wirepb.HubClient, *http.Transport, error) {
	text, err := unix.ReadAtMost(c.CA, mostPEM)
	if err != nil {
		return nil, nil, fmt.Errorf("read the hub's authority: %w", err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(text) {
		return nil, nil, fmt.Errorf("read the hub's authority: %s has no certificate", c.CA)
	}
	t := transport(&tls.Config{MinVersion: tls.VersionTLS13, RootCAs: roots, GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		return readPair(c)
	}})
	return wirepb.NewHubClient(&http.Client{Transport: t}, c.Address, connect.WithReadMaxBytes(mostReply)), t, nil
}

func transport(c *tls.Config) *http.Transport {
	return &http.Transport{
		TLSClientConfig: c, ForceAttemptHTTP2: true, MaxConnsPerHost: 1, IdleConnTimeout: 2 * time.Minute, TLSHandshakeTimeout: dialLimit,
		DialContext: (&net.Dialer{Timeout: dialLimit}).DialContext,
		HTTP2:       &http.HTTP2Config{SendPingTimeout: 30 * time.Second, PingTimeout: 15 * time.Second}, // a hub whose host is gone
	}
}

// readPair reads the host's certificate and key.
func readPair(c Config) (*tls.Certificate, error) {
	text, err := unix.ReadAtMost(c.Certificate, mostPEM)
	if err != nil {
		return nil, fmt.Errorf("read this host's certificate: %w", err)
	}
	key := text
	if c.Key != "" {
		if key, err = unix.ReadAtMost(c.Key, mostPEM); err != nil {
			return nil, fmt.Errorf("read this host's key: %w", err)
		}
	}
	pair, err := tls.X509KeyPair(text, key)
	if err != nil {
		return nil, fmt.Errorf("read this host's certificate %s: %w", c.Certificate, err)
	}
	return &pair, nil
}

// renewAt is when two thirds of a certificate's time have passed.
func renewAt(c *x509.Certificate) time.Time {
	return c.NotBefore.Add(c.NotAfter.Sub(c.NotBefore) * 2 / 3)
}

// renew gets a new certificate for the present one. Where one file has both, the key is new,
// too; a key with a file of its own stays, because two files cannot be replaced at once.
func renew(ctx context.Context, client wirepb.HubClient, c Config) error {
	var key crypto.Signer
	if c.Key != "" {
		pair, err := readPair(c)
		if err != nil {
			return err
		}
		var ok bool
		if key, ok = pair.PrivateKey.(crypto.Signer); !ok {
			return errors.New("this host's key cannot sign")
		}
	}
	key, request, err := newRequest(key)
	if err != nil {
		return err
	}
	answer, err := client.Renew(ctx, &wirepb.RenewRequest{Request: request})
	if err != nil {
		return err
	}
	return writePair(c.Certificate, answer.Certificate, key, c.Key == "")
}

// newRequest makes a key, unless there is one, and a request for a certificate.
func newRequest(key crypto.Signer) (crypto.Signer, []byte, error) {
	if key == nil {
		var err error
		if key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
			return nil, nil, err
		}
	}
	request, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, key)
	return key, request, err
}

func writePair(path string, certificate []byte, key crypto.Signer, both bool) error {
	leaf, err := x509.ParseCertificate(certificate)
	if err != nil {
		return fmt.Errorf("read the new certificate: %w", err)
	}
	if pub, ok := key.Public().(*ecdsa.PublicKey); !ok || !pub.Equal(leaf.PublicKey) {
		return errors.New("read the new certificate: it is for another key")
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate})
	if both {
		der, err := x509.MarshalPKCS8PrivateKey(key)
		if err != nil {
			return err
		}
		text = append(text, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})...)
	}
	return unix.ReplaceFile(path, text)
}

// Enrol uses a token of 'homenode-hub enrol' and writes the authority and this host's
// certificate with its key. The token says which authority to trust. It returns the host's name.
func Enrol(ctx context.Context, address, token, caFile, certificateFile string) (host string, err error) {
	_, want, ok := strings.Cut(token, ".")
	if !ok {
		return "", errors.New("the token is not whole: want SECRET.FINGERPRINT, as 'homenode-hub enrol' prints it")
	}
	t := transport(&tls.Config{MinVersion: tls.VersionTLS13, InsecureSkipVerify: true, VerifyConnection: func(s tls.ConnectionState) error {
		return trusts(s, want)
	}})
	defer t.CloseIdleConnections()
	client := wirepb.NewHubClient(&http.Client{Transport: t}, address, connect.WithReadMaxBytes(mostReply))
	key, request, err := newRequest(nil)
	if err != nil {
		return "", err
	}
	answer, err := client.Enrol(ctx, &wirepb.EnrolRequest{Token: token, Request: request})
	if err != nil {
		return "", fmt.Errorf("enrol at %s: %w", address, err)
	}
	if fingerprint(answer.Authority) != want {
		return "", errors.New("the hub answered with another authority than the token's")
	}
	leaf, err := x509.ParseCertificate(answer.Certificate)
	if err != nil || len(leaf.DNSNames) != 1 {
		return "", errors.New("the hub answered without a host's certificate")
	}
	err = unix.ReplaceFile(caFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: answer.Authority}))
	return leaf.DNSNames[0], errors.Join(err, writePair(certificateFile, answer.Certificate, key, true))
}

// trusts checks the hub of a host that has no authority yet: the token names it.
func trusts(s tls.ConnectionState, want string) error {
	roots := x509.NewCertPool()
	for _, c := range s.PeerCertificates {
		if fingerprint(c.Raw) == want {
			roots.AddCert(c)
		}
	}
	if len(s.PeerCertificates) == 0 {
		return errors.New("the hub has no certificate")
	}
	if _, err := s.PeerCertificates[0].Verify(x509.VerifyOptions{DNSName: s.ServerName, Roots: roots}); err != nil {
		return fmt.Errorf("the hub is not the one that made the token: %w", err)
	}
	return nil
}

func fingerprint(der []byte) string {
	sum := sha256.Sum256(der)
	return hex.EncodeToString(sum[:16])
}
