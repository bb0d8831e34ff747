// SPDX-License-Identifier: Apache-2.0

package ca

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"sync"
	"time"

	"homenode/internal/kernel/unix"
)

// Lifetimes of certificates. A host renews at two thirds of its own: a month leaves ten days
// in which the hub may be away.
const (
	authorityLife = 10 * 365 * 24 * time.Hour
	HostLife      = 30 * 24 * time.Hour
	hubLife       = 7 * 24 * time.Hour
	// backdate allows for clocks of hosts that are behind.
	backdate = 5 * time.Minute
)

const (
	certificateFile = "ca.pem"
	keyFile         = "ca-key.pem"
	mostPEM         = 1 << 20
)

// Authority gives and checks certificates. It is safe for concurrent use.
type Authority struct {
	dir  string
	cert *x509.Certificate
	key  crypto.Signer
	Now  func() time.Time

	mu      sync.Mutex
	revoked revoked
}

// Open reads the authority in dir, and makes one if there is none and make is set.
func Open(dir string, make bool) (*Authority, error) {
	a := &Authority{dir: dir, Now: time.Now}
	_, err := os.Stat(filepath.Join(dir, certificateFile))
	if errors.Is(err, fs.ErrNotExist) && make {
		if err := a.create(); err != nil {
			return nil, fmt.Errorf("make a certificate authority in %s: %w", dir, err)
		}
	}
	if err := a.read(); err != nil {
		return nil, fmt.Errorf("read the certificate authority in %s: %w", dir, err)
	}
	return a, nil
}

func (a *Authority) create() error {
	if err := os.MkdirAll(filepath.Join(a.dir, tokensDir), 0o700); err != nil {
		return err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	now := a.Now()
	t := &x509.Certificate{
		SerialNumber: serial(), Subject: pkix.Name{CommonName: "homenode-hub"}, NotBefore: now.Add(-backdate), NotAfter: now.Add(authorityLife),
		IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, t, t, key.Public(), key)
	if err != nil {
		return err
	}
	text, err := KeyPEM(key)
	if err != nil {
		return err
	}
	// The key first: an authority is there once its certificate is.
	if err := unix.ReplaceShared(filepath.Join(a.dir, keyFile), text); err != nil {
		return err
	}
	return unix.ReplaceShared(filepath.Join(a.dir, certificateFile), CertificatePEM(der))
}

func (a *Authority) read() error {
	text, err := unix.ReadAtMost(filepath.Join(a.dir, certificateFile), mostPEM)
	if err != nil {
		return err
	}
	key, err := unix.ReadAtMost(filepath.Join(a.dir, keyFile), mostPEM)
	if err != nil {
		return err
	}
	pair, err := tls.X509KeyPair(text, key)
	if err != nil {
		return err
	}
	signer, ok := pair.PrivateKey.(crypto.Signer)
	if !ok || !pair.Leaf.IsCA {
		return fmt.Errorf("%s is not of an authority", certificateFile)
	}
	a.cert, a.key = pair.Leaf, signer
	return nil
}

// Certificate is the authority's own, as PEM: what agents trust.
func (a *Authority) Certificate() []byte { return CertificatePEM(a.cert.Raw) }

// DER is the same in binary form.
func (a *Authority) DER() []byte { return a.cert.Raw }

// Fingerprint names a certificate in a token.
func Fingerprint(der []byte) string {
	sum := sha256.Sum256(der)
	return hex.EncodeToString(sum[:16])
}

// Server makes a certificate for the hub itself: names are host names and addresses. The
// authority comes with it, so that a host that enrols can compare it with its token.
func (a *Authority) Server(names []string) (*tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	t := a.template(hubLife, x509.ExtKeyUsageServerAuth)
	for _, n := range names {
		if ip := net.ParseIP(n); ip != nil {
			t.IPAddresses = append(t.IPAddresses, ip)
		} else {
			t.DNSNames = append(t.DNSNames, n)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, t, a.cert, key.Public(), a.key)
	if err != nil {
		return nil, fmt.Errorf("make the hub's certificate: %w", err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	return &tls.Certificate{Certificate: [][]byte{der, a.cert.Raw}, PrivateKey: key, Leaf: leaf}, nil
}

// hostName is what a host may be called: as a DNS name, with underscores.
var hostName = regexp.MustCompile(`^[A-Za-z0-9_]([A-Za-z0-9_.-]{0,251}[A-Za-z0-9_])?$`)

// CheckHost refuses what cannot be a host's name.
func CheckHost(name string) error {
	if !hostName.MatchString(name) {
		return fmt.Errorf("%q is not a host's name: want letters, digits, '.', '-' and '_', at most 253", name)
	}
	return nil
}

// Issue makes a certificate of a host for the key of a request (PKCS #10, DER). Whatever
// else the request says does not count.
func (a *Authority) Issue(host string, request []byte) (der []byte, err error) {
	if err := CheckHost(host); err != nil {
		return nil, err
	}
	r, err := x509.ParseCertificateRequest(request)
	if err != nil {
		return nil, fmt.Errorf("read the request for a certificate: %w", err)
	}
	if err := r.CheckSignature(); err != nil {
		return nil, fmt.Errorf("check the request for a certificate: %w", err)
	}
	if _, ok := r.PublicKey.(*ecdsa.PublicKey); !ok {
		return nil, errors.New("the request for a certificate has another key than ECDSA")
	}
	t := a.template(HostLife, x509.ExtKeyUsageClientAuth)
	t.DNSNames = []string{host}
	return x509.CreateCertificate(rand.Reader, t, a.cert, r.PublicKey, a.key)
}

func (a *Authority) template(life time.Duration, use x509.ExtKeyUsage) *x509.Certificate {
	now := a.Now()
	return &x509.Certificate{SerialNumber: serial(), NotBefore: now.Add(-backdate), NotAfter: now.Add(life),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{use}}
}

// The errors of a certificate that is not let in.
var (
	ErrUnknown = errors.New("this hub's authority did not make the certificate")
	ErrExpired = errors.New("the certificate has ended: enrol the host again")
	ErrRevoked = errors.New("the certificate is revoked: enrol the host again")
)

// Host is the host that a certificate identifies.
func (a *Authority) Host(c *x509.Certificate) (string, error) {
	roots := x509.NewCertPool()
	roots.AddCert(a.cert)
	now := a.Now()
	if now.After(c.NotAfter) || now.Before(c.NotBefore) {
		if c.CheckSignatureFrom(a.cert) == nil {
			return "", ErrExpired
		}
		return "", ErrUnknown
	}
	if _, err := c.Verify(x509.VerifyOptions{Roots: roots, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}); err != nil {
		return "", fmt.Errorf("%w: %w", ErrUnknown, err)
	}
	if len(c.DNSNames) != 1 || CheckHost(c.DNSNames[0]) != nil {
		return "", fmt.Errorf("%w: it names no host", ErrUnknown)
	}
	host := c.DNSNames[0]
	bad, err := a.isRevoked(host, c.NotBefore.Add(backdate))
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrRevoked, err) // what cannot be read lets no host in
	}
	if bad {
		return "", ErrRevoked
	}
	return host, nil
}

func serial() *big.Int {
	n, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		panic(err) // crypto/rand does not fail
	}
	return n
}

// CertificatePEM is a certificate as text.
func CertificatePEM(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

// KeyPEM is a key as text.
func KeyPEM(key crypto.Signer) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), nil
}

// Pair makes key and certificate of a host in one file, for 'homenode-hub dev': elsewhere the
// key is made on the host.
func (a *Authority) Pair(host string) ([]byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	request, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, key)
	if err != nil {
		return nil, err
	}
	der, err := a.Issue(host, request)
	if err != nil {
		return nil, err
	}
	text, err := KeyPEM(key)
	return append(CertificatePEM(der), text...), err
}
