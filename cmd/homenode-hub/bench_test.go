// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"connectrpc.com/connect"
	"golang.org/x/sync/errgroup"

	"homenode/internal/hub/ca"
	"homenode/internal/store"
	"homenode/internal/store/storetest"
	"homenode/internal/wire"
	"homenode/internal/wire/wirepb"
)

// A request of the bench is a minute of a host: 20 workloads, a window each 10 s.
const (
	benchHosts     = 100
	benchWorkloads = 20
	benchTogether  = 6 // batches
)

// TestBenchWire sends HOMENODE_BENCH_WINDOWS windows of 100 hosts through TLS to a hub whose store is the
// ClickHouse of HOMENODE_CLICKHOUSE, with the settings that docs/hub.md has for ClickHouse. What is
// sent is packed before. Senders, hub and server share this machine.
func TestBenchWire(t *testing.T) {
	want, err := strconv.Atoi(os.Getenv("HOMENODE_BENCH_WINDOWS"))
	server := os.Getenv("HOMENODE_CLICKHOUSE")
	if err != nil || server == "" {
		t.Skip("HOMENODE_BENCH_WINDOWS and HOMENODE_CLICKHOUSE are not both set: the bench takes minutes (scripts/bench-store.sh)")
	}
	dir := prepare(t, fmt.Sprintf("requests: 100\ngather: 100ms\nclickhouse: {address: '%s'}", server))
	authority, err := ca.Open(filepath.Join(dir, "ca"), true)
	if err != nil {
		t.Fatal(err)
	}
	h := start(t, "hub "+dir, func(string) {})
	defer h.kill()
	each := want / benchHosts / benchWorkloads / benchTogether
	hosts := make([]*benchHost, benchHosts)
	for i := range hosts {
		if hosts[i], err = newBenchHost(dir, authority, i, each); err != nil {
			t.Fatal(err)
		}
	}
	began := time.Now()
	var all errgroup.Group
	for _, b := range hosts {
		all.Go(func() error { return b.send(t) })
	}
	if err := all.Wait(); err != nil {
		t.Fatal(err)
	}
	windows := benchHosts * each * benchTogether * benchWorkloads
	fmt.Printf("figure wire_windows %d\nfigure wire_windows_per_s %.0f\n", windows, float64(windows)/time.Since(began).Seconds())
}

type benchHost struct {
	client   wirepb.HubClient
	requests []*wirepb.SendRequest
}

func newBenchHost(dir string, authority *ca.Authority, i, requests int) (*benchHost, error) {
	name := fmt.Sprint("bench-", i)
	text, err := authority.Pair(name)
	if err != nil {
		return nil, err
	}
	pair, err := tls.X509KeyPair(text, text)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(authority.Certificate())
	t := &http.Transport{ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS13, RootCAs: roots, Certificates: []tls.Certificate{pair}}}
	b := &benchHost{client: wirepb.NewHubClient(&http.Client{Transport: t}, "https://"+address(dir))}
	r := rand.New(rand.NewPCG(24, uint64(i)))
	at, number := time.Now().Add(-24*time.Hour), uint64(0)
	var p wire.Packer
	for range requests {
		request := &wirepb.SendRequest{}
		for range benchTogether {
			number++
			at = at.Add(10 * time.Second)
			one := store.Batch{Run: "run", Number: number}
			for w := range benchWorkloads {
				one.Windows = append(one.Windows, storetest.Full(r, at, i*benchWorkloads+w))
			}
			packed, err := p.Pack(one)
			if err != nil {
				return nil, err
			}
			request.Batches = append(request.Batches, slices.Clone(packed))
		}
		b.requests = append(b.requests, request)
	}
	return b, nil
}

// send sends all, and comes back when the hub says so.
func (b *benchHost) send(t *testing.T) error {
	for _, r := range b.requests {
		for {
			answer, err := b.client.Send(t.Context(), r)
			var e *connect.Error
			if errors.As(err, &e) && e.Code() == connect.CodeUnavailable {
				time.Sleep(20 * time.Millisecond)
				continue
			}
			if err != nil || int(answer.Settled) != len(r.Batches) || len(answer.Refused) > 0 {
				return fmt.Errorf("%+v, %w", answer, err)
			}
			break
		}
	}
	return nil
}
