// SPDX-License-Identifier: Apache-2.0

package outbox

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"connectrpc.com/connect"

	"homenode/internal/hub"
	"homenode/internal/hub/ca"
	"homenode/internal/kernel/unix"
	"homenode/internal/store"
	"homenode/internal/unit"
	"homenode/internal/wire"
	"homenode/internal/wire/wirepb"
)

// memory is a store that counts how often it has each batch.
type memory struct {
	store.Store
	mu   sync.Mutex
	has  map[string]store.Batch
	gone atomic.Bool
	slow chan struct{} // nil: it is not
}

func (m *memory) Add(ctx context.Context, all []store.Batch) (added int, err error) {
	if m.gone.Load() {
		return 0, store.ErrBusy
	}
	if m.slow != nil {
		select {
		case <-m.slow:
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, b := range all {
		key := fmt.Sprint(b.Host, " ", b.Run, " ", b.Number)
		if _, ok := m.has[key]; !ok {
			m.has[key] = b
			added++
		}
	}
	return added, nil
}

func (m *memory) Maintain(context.Context, time.Time, store.Retention) error { return nil }

// windows are the workloads of all windows of a host, each once for each batch.
func (m *memory) windows(host string) map[string]int {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := map[string]int{}
	for _, b := range m.has {
		for _, w := range b.Windows {
			if b.Host == host {
				out[w.Workload]++
			}
		}
	}
	return out
}

// fleet is an authority, a store and hubs that serve on loopback.
type fleet struct {
	t     *testing.T
	dir   string
	ca    *ca.Authority
	store *memory
	hubs  []*hub.Server
	urls  []string
}

func newFleet(t *testing.T, hubs int, o hub.Options) *fleet {
	t.Helper()
	f := &fleet{t: t, dir: t.TempDir(), store: &memory{has: map[string]store.Batch{}}}
	var err error
	if f.ca, err = ca.Open(filepath.Join(f.dir, "ca"), true); err != nil {
		t.Fatal(err)
	}
	o.Authority, o.Names = f.ca, []string{"127.0.0.1"}
	for range hubs {
		h := hub.New(f.store, o)
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		ctx, end := context.WithCancel(context.Background())
		var ended sync.WaitGroup
		ended.Go(func() { _ = h.Run(ctx, l, nil, nil, store.Usual) })
		t.Cleanup(func() { end(); h.Close(); ended.Wait() })
		f.hubs, f.urls = append(f.hubs, h), append(f.urls, "https://"+l.Addr().String())
	}
	return f
}

func (f *fleet) config(host string) Config {
	f.t.Helper()
	dir := f.t.TempDir()
	pair, err := f.ca.Pair(host)
	if err != nil {
		f.t.Fatal(err)
	}
	c := Config{Address: f.urls[0], CA: filepath.Join(dir, "ca.pem"), Certificate: filepath.Join(dir, "host.pem"), Spool: filepath.Join(dir, "spool"), Budget: unit.MiB}
	if err := errors.Join(os.WriteFile(c.CA, f.ca.Certificate(), 0o600), os.WriteFile(c.Certificate, pair, 0o600)); err != nil {
		f.t.Fatal(err)
	}
	return c
}

func (f *fleet) client(c Config) wirepb.HubClient {
	f.t.Helper()
	client, t, err := newClient(c)
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(t.CloseIdleConnections)
	return client
}

func (f *fleet) reasons() (all []string) {
	for _, r := range f.hubs[0].Refusals() {
		all = append(all, r.Host+" "+r.Reason)
	}
	return all
}

func batchOf(name string) store.Batch {
	return store.Batch{Windows: []store.Window{{At: time.Now(), Length: time.Second, Workload: name}}}
}

func packed(t *testing.T, b store.Batch) []byte {
	t.Helper()
	var p wire.Packer
	out, err := p.Pack(b)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// until waits for what will be; the test's deadline ends it.
func until(t *testing.T, what string, yes func() bool) {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); !yes(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not after two minutes", what)
		}
	}
}

// A hub that is away for an hour of the agent's clock: everything arrives, once each.
func TestAnHourWithoutAHub(t *testing.T) {
	f := newFleet(t, 1, hub.Options{})
	f.store.gone.Store(true)
	var ahead atomic.Int64 // of the agent's clock
	clock := Clock{Now: func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) },
		Sleep: func(ctx context.Context, d time.Duration, wake <-chan struct{}) {
			ahead.Add(int64(d))
			sleep(ctx, min(d, time.Millisecond), wake)
		}}
	o, err := newOutbox(f.config("db-7"), slog.New(slog.DiscardHandler), clock, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	const windows = 360
	for i := range windows {
		o.Put(batchOf(fmt.Sprint("/w", i))) // Offer drops when a disk is too slow for ten windows a millisecond
	}
	until(t, "an hour", func() bool { return time.Duration(ahead.Load()) > time.Hour && o.Status().Waiting == windows })
	if s := o.Status(); s.Error == "" || s.Sent != 0 {
		t.Errorf("while the store is gone: %+v", s)
	}
	f.store.gone.Store(false)
	until(t, "all sent", func() bool { return o.Status().Waiting == 0 })
	got := f.store.windows("db-7")
	for i := range windows {
		if got[fmt.Sprint("/w", i)] != 1 {
			t.Errorf("window %d is there %d times", i, got[fmt.Sprint("/w", i)])
		}
	}
	until(t, "the error is gone", func() bool { return o.Status().Error == "" })
	if s := o.Status(); s.Sent != windows || len(s.Dropped) != 0 {
		t.Errorf("after: %+v", s)
	}
}

// Two replicas with one store; the same batches at both, in any order, are kept once.
func TestDuplicatesAndOrder(t *testing.T) {
	f := newFleet(t, 2, hub.Options{})
	c := f.config("db-7")
	other := c
	other.Address = f.urls[1]
	for _, client := range []wirepb.HubClient{f.client(c), f.client(other), f.client(c)} {
		for _, n := range []uint64{3, 1, 2, 3} {
			b := batchOf(fmt.Sprint("/w", n))
			b.Run, b.Number = "r", n
			if a, err := client.Send(context.Background(), &wirepb.SendRequest{Batches: [][]byte{packed(t, b)}}); err != nil || a.Settled != 1 || len(a.Refused) != 0 {
				t.Fatalf("%v, %v", a, err)
			}
		}
	}
	if got := fmt.Sprint(f.store.windows("db-7")); got != "map[/w1:1 /w2:1 /w3:1]" {
		t.Error(got)
	}
}

// A host cannot write as another, and bad batches do not keep good ones out.
func TestBadBatches(t *testing.T) {
	f := newFleet(t, 1, hub.Options{})
	client := f.client(f.config("db-7"))
	good, claims, newer := batchOf("/good"), batchOf("/claims"), batchOf("/later")
	good.Run, good.Number, claims.Run, claims.Number, claims.Host, newer.Run, newer.Number = "r", 1, "r", 2, "db-8", "r", 3
	r := &wirepb.SendRequest{Batches: [][]byte{packed(t, claims), []byte("no batch"), packed(t, good)}}
	a, err := client.Send(context.Background(), r)
	if err != nil || a.Settled != 3 || len(a.Refused) != 2 || a.Refused[0].Reason != string(wire.WrongHost) || a.Refused[1].Reason != string(wire.Malformed) {
		t.Fatalf("%v, %v", a, err)
	}
	if got := fmt.Sprint(f.store.windows("db-7"), f.store.windows("db-8")); got != "map[/good:1] map[]" {
		t.Error(got)
	}
	if got := strings.Join(f.reasons(), ", "); got != "db-7 malformed, db-7 host" {
		t.Error(got)
	}
	metrics := httptest.NewRecorder()
	mux := http.NewServeMux()
	f.hubs[0].AddRoutes(mux)
	mux.ServeHTTP(metrics, httptest.NewRequest("GET", "/metrics", nil))
	for _, want := range []string{`homenode_hub_refused_total{reason="host"} 1`, `homenode_hub_refused_total{reason="figure"} 0`, "homenode_hub_batches_kept_total 1"} {
		if !strings.Contains(metrics.Body.String(), want) {
			t.Errorf("no %s", want)
		}
	}
}

// Clients that are unknown, expired or revoked are not let in, and why is recorded.
func TestBadClients(t *testing.T) {
	f := newFleet(t, 1, hub.Options{})
	send := func(c Config) error {
		b := batchOf("/x")
		b.Run, b.Number = c.Certificate, 1
		client, tr, err := newClient(c)
		if err != nil {
			t.Fatal(err)
		}
		defer tr.CloseIdleConnections()
		_, err = client.Send(context.Background(), &wirepb.SendRequest{Batches: [][]byte{packed(t, b)}})
		return err
	}
	other := newFleet(t, 1, hub.Options{})
	stranger := other.config("db-1")
	stranger.Address = f.urls[0]
	stranger.CA = f.config("x").CA
	f.ca.Now = func() time.Time { return time.Now().Add(-2 * ca.HostLife) }
	expired := f.config("db-2")
	f.ca.Now = time.Now
	revoked, good := f.config("db-3"), f.config("db-4")
	kept := f.client(revoked) // a connection that is open already
	if _, err := kept.Orders(context.Background(), &wirepb.OrdersRequest{}); err != nil {
		t.Fatal(err)
	}
	f.ca.Now = func() time.Time { return time.Now().Add(2 * time.Second) }
	if err := f.ca.Revoke("db-3"); err != nil {
		t.Fatal(err)
	}
	f.ca.Now = time.Now
	for name, c := range map[string]Config{"stranger": stranger, "expired": expired, "revoked": revoked} {
		if err := send(c); err == nil {
			t.Errorf("%s: let in", name)
		}
	}
	if _, err := kept.Orders(context.Background(), &wirepb.OrdersRequest{}); connect.CodeOf(err) != connect.CodeUnauthenticated {
		t.Errorf("an open connection of a revoked host: %v", err)
	}
	if err := send(good); err != nil {
		t.Error(err)
	}
	all := strings.Join(f.reasons(), ", ")
	for _, want := range []string{" unknown_client", "db-2 expired_client", "db-3 revoked_client"} {
		if !strings.Contains(all, want) {
			t.Errorf("no %q in %s", want, all)
		}
	}
	none := &http.Client{Transport: transport(&tls.Config{InsecureSkipVerify: true})}
	if _, err := wirepb.NewHubClient(none, f.urls[0]).Orders(context.Background(), &wirepb.OrdersRequest{}); connect.CodeOf(err) != connect.CodeUnauthenticated {
		t.Errorf("without a certificate: %v", err)
	}
	if len(f.store.has) != 1 {
		t.Errorf("%d batches were kept", len(f.store.has))
	}
}

// A slow store: some requests wait, the others are told to come back, none is lost.
func TestASlowStore(t *testing.T) {
	f := newFleet(t, 1, hub.Options{Requests: 2})
	f.store.slow = make(chan struct{})
	var busy, done atomic.Int32
	var all sync.WaitGroup
	for i := range 8 {
		client := f.client(f.config(fmt.Sprint("db-", i)))
		all.Go(func() {
			b := batchOf("/x")
			b.Run, b.Number = "r", 1
			r := &wirepb.SendRequest{Batches: [][]byte{packed(t, b)}}
			for {
				_, err := client.Send(context.Background(), r)
				if err == nil {
					done.Add(1)
					return
				}
				var e *connect.Error
				if connect.CodeOf(err) != connect.CodeUnavailable || !errors.As(err, &e) || e.Meta().Get(hub.RetryAfter) == "" {
					t.Errorf("%v", err)
					return
				}
				busy.Add(1)
				time.Sleep(5 * time.Millisecond)
			}
		})
	}
	until(t, "requests are turned away", func() bool { return busy.Load() >= 12 })
	if done.Load() != 0 {
		t.Error("an answer before the store had it")
	}
	close(f.store.slow)
	all.Wait()
	if len(f.store.has) != 8 || done.Load() != 8 {
		t.Errorf("%d kept, %d answered", len(f.store.has), done.Load())
	}
}

// A token is good for one host, once; the certificate is renewed with a new key.
func TestEnrolAndRenew(t *testing.T) {
	f := newFleet(t, 1, hub.Options{})
	token, err := f.ca.Token("web-1")
	if err != nil {
		t.Fatal(err)
	}
	c := f.config("x")
	ctx := context.Background()
	secret, mark, _ := strings.Cut(token, ".")
	if _, err := Enrol(ctx, f.urls[0], secret+"."+strings.Repeat("0", len(mark)), c.CA, c.Certificate); err == nil || !strings.Contains(err.Error(), "not the one that made the token") {
		t.Errorf("a hub with another authority: %v", err)
	}
	host, err := Enrol(ctx, f.urls[0], token, c.CA, c.Certificate)
	if err != nil || host != "web-1" {
		t.Fatal(host, err)
	}
	if _, err := Enrol(ctx, f.urls[0], token, c.CA, c.Certificate); connect.CodeOf(errors.Unwrap(err)) != connect.CodePermissionDenied {
		t.Errorf("the token twice: %v", err)
	}
	before, _ := os.ReadFile(c.Certificate)
	if err := renew(ctx, f.client(c), c); err != nil {
		t.Fatal(err)
	}
	after, _ := os.ReadFile(c.Certificate)
	if string(before) == string(after) {
		t.Error("the certificate is the same")
	}
	if _, err := f.client(c).Orders(ctx, &wirepb.OrdersRequest{}); err != nil {
		t.Error(err)
	}
	if got := strings.Join(f.reasons(), ", "); !strings.Contains(got, "token") {
		t.Error(got)
	}
}

// Orders are pulled, change with their file, and end.
func TestOrders(t *testing.T) {
	file := filepath.Join(t.TempDir(), "orders.yaml")
	write := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("valid_for: 1h\nservices: [{name: shop, approved: true, target_local_ratio: 0.9}]\nexcluded: [/db/*]\n")
	f := newFleet(t, 1, hub.Options{OrdersFile: file})
	var ahead atomic.Int64
	now := func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	o := &Outbox{c: f.config("db-7"), log: slog.New(slog.DiscardHandler), clock: Clock{now, sleep}, client: f.client(f.config("db-7"))}
	if err := o.pull(context.Background()); err != nil {
		t.Fatal(err)
	}
	got, ok := o.Orders()
	if !ok || !got.Services["shop"].Approved || got.Services["shop"].Target.Or(0) != .9 || !got.Excludes("/db/a") || got.Excludes("/web/a") {
		t.Fatalf("%+v", got)
	}
	// with a batch that is sent anyway
	o.spool = open(t, t.TempDir(), 1<<20)
	sent := func(number uint64, want bool) {
		t.Helper()
		b := batchOf("/x")
		b.Run, b.Number = "r", number
		if err := o.spool.Add(packed(t, b)); err != nil {
			t.Fatal(err)
		}
		if _, ordered, err := o.sendNext(context.Background(), true); err != nil || ordered != want {
			t.Errorf("sent with orders: %t, %v, want %t", ordered, err, want)
		}
	}
	write("services: [{name: shop, approved: false}]\n")
	sent(1, true)
	if got, ok := o.Orders(); !ok || got.Services["shop"].Approved {
		t.Errorf("%+v", got)
	}
	write("services: [{name: shop, nonsense: 1}]\n")
	sent(2, false)
	if err := o.pull(context.Background()); err != nil {
		t.Errorf("orders that cannot be read are no failure of sending: %v", err)
	}
	if _, ok := o.Orders(); !ok {
		t.Error("the last orders hold")
	}
	ahead.Store(int64(61 * time.Minute))
	if _, ok := o.Orders(); ok {
		t.Error("orders hold after their end")
	}
}

// A host gets the orders of rollouts that are its own, with a batch and alone. Where the file names the
// service, the file holds; without a file, and after its end, rollouts go on.
func TestOrdersByHost(t *testing.T) {
	file := filepath.Join(t.TempDir(), "orders.yaml")
	rollouts := func(host string) []hub.ServiceOrder {
		return []hub.ServiceOrder{{Name: "shop", Approved: host == "db-7"}, {Name: "named", Approved: true}}
	}
	for _, text := range []string{"", "valid_for: 2h\nservices: [{name: named, approved: false}]\n", "until: 2020-01-01T00:00:00Z\nservices: [{name: named, approved: false}]\n"} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		o := hub.Options{OrdersFile: file, Rollouts: rollouts}
		if text == "" {
			o.OrdersFile = ""
		}
		f := newFleet(t, 1, o)
		versions := map[string]bool{}
		for _, host := range []string{"db-7", "db-8"} {
			c := f.config(host)
			out := &Outbox{c: c, log: slog.New(slog.DiscardHandler), clock: Clock{time.Now, sleep}, client: f.client(c), spool: open(t, t.TempDir(), 1<<20)}
			b := batchOf("/x")
			b.Run, b.Number = "r", 1
			if err := out.spool.Add(packed(t, b)); err != nil {
				t.Fatal(err)
			}
			if _, ordered, err := out.sendNext(t.Context(), true); err != nil || !ordered {
				t.Fatalf("%s: sent with orders: %t, %v", host, ordered, err)
			}
			sent, _ := out.Orders()
			if err := out.pull(t.Context()); err != nil {
				t.Fatal(err)
			}
			got, ok := out.Orders()
			named := got.Services["named"].Approved != strings.HasPrefix(text, "valid_for")
			if !ok || got.Services["shop"].Approved != (host == "db-7") || !named || got.Version != sent.Version {
				t.Errorf("%q, %s: %+v", text, host, got)
			}
			versions[got.Version] = true
		}
		if len(versions) != 2 {
			t.Errorf("%q: different orders have one version", text)
		}
	}
}

// The agent is never held up: what the disk cannot take is counted.
func TestOfferNeverWaits(t *testing.T) {
	o := &Outbox{queue: make(chan queued, 1), spool: open(t, t.TempDir(), 1<<20)}
	for range 3 {
		o.Offer(batchOf("/x"))
	}
	if got := o.spool.Status().Dropped[DropQueue]; got != 2 {
		t.Errorf("%d dropped, want 2", got)
	}
	(*Outbox)(nil).Offer(batchOf("/x"))
}

// hanging is a file on a disk that does not answer.
type hanging struct {
	file
	until chan struct{}
}

func (h hanging) Write(p []byte) (int, error) { <-h.until; return h.file.Write(p) }

// A disk that hangs holds up neither the agent's loop, nor what it tells, nor its end.
func TestHangingDisk(t *testing.T) {
	c := newFleet(t, 1, hub.Options{}).config("db-7")
	o, err := newOutbox(c, slog.New(slog.DiscardHandler), Clock{time.Now, func(ctx context.Context, d time.Duration, wake <-chan struct{}) {
		sleep(ctx, min(d, 5*time.Millisecond), wake)
	}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	o.patience = 10 * time.Millisecond
	answer := make(chan struct{})
	o.spool.mu.Lock()
	o.spool.create = func(path string) (file, error) { f, err := createFile(path); return hanging{f, answer}, err }
	o.spool.mu.Unlock()
	for range mostQueued + 10 {
		o.Offer(batchOf("/x"))
	}
	until(t, "the queue is full", func() bool {
		o.Offer(batchOf("/x")) // the writer may have begun only now, and taken some
		return len(o.queue) == mostQueued
	})
	if s := o.Status(); s.Dropped[DropQueue] < 9 || s.Waiting != mostQueued {
		t.Errorf("%+v", s)
	}
	o.Close()
	close(answer)
	o.ended.Wait()
}

// A revoked host that is enrolled again goes on without a restart.
func TestEnrolledAgain(t *testing.T) {
	f := newFleet(t, 1, hub.Options{})
	c := f.config("db-7")
	o, err := newOutbox(c, slog.New(slog.DiscardHandler), Clock{time.Now, func(ctx context.Context, d time.Duration, wake <-chan struct{}) {
		sleep(ctx, min(d, 5*time.Millisecond), wake)
	}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	o.Offer(batchOf("/before"))
	until(t, "sent", func() bool { return o.Status().Sent == 1 })
	f.ca.Now = func() time.Time { return time.Now().Add(2 * time.Second) }
	if err := f.ca.Revoke("db-7"); err != nil {
		t.Fatal(err)
	}
	o.Offer(batchOf("/after"))
	until(t, "refused", func() bool { return strings.Contains(o.Status().Error, "revoked") })
	f.ca.Now = func() time.Time { return time.Now().Add(10 * time.Second) }
	pair, err := f.ca.Pair("db-7")
	if err == nil {
		err = unix.ReplaceFile(c.Certificate, pair)
	}
	if err != nil {
		t.Fatal(err)
	}
	until(t, "sent again", func() bool { return o.Status().Sent == 2 })
	if got := fmt.Sprint(f.store.windows("db-7")); got != "map[/after:1 /before:1]" {
		t.Error(got)
	}
}

// A certificate is renewed when it is due, not before; without an answer the old one stays.
func TestRenewIfDue(t *testing.T) {
	f := newFleet(t, 1, hub.Options{})
	c := f.config("db-7")
	o := &Outbox{c: c, log: slog.New(slog.DiscardHandler), clock: Clock{time.Now, sleep}, client: f.client(c)}
	has := func() string {
		b, err := os.ReadFile(c.Certificate)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	first := has()
	cert, err := o.certificate()
	if err != nil {
		t.Fatal(err)
	}
	due := renewAt(cert)
	o.renewIfDue(context.Background(), due.Add(-time.Second))
	if has() != first || !o.status.Certificate.Equal(cert.NotAfter) {
		t.Errorf("before it is due: renewed %t, status %v", has() != first, o.status.Certificate)
	}
	ended, end := context.WithCancel(context.Background())
	end()
	o.renewIfDue(ended, due)
	if has() != first {
		t.Error("the certificate changed without an answer")
	}
	o.renewIfDue(context.Background(), due)
	if has() == first {
		t.Error("not renewed when it is due")
	}
}
