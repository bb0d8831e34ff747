// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"
	"time"

	"connectrpc.com/connect"

	"homenode/internal/hub/ca"
	"homenode/internal/store"
	"homenode/internal/wire"
	"homenode/internal/wire/wirepb"
)

// TLS is the configuration of a listener for Handler. A client without a certificate may
// only enrol. One with a certificate that is not good is not let in; why is recorded.
func (h *Server) TLS() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13, NextProtos: []string{"h2", "http/1.1"},
		ClientAuth:     tls.RequestClientCert,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return h.certificate() },
		GetConfigForClient: func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
			from := hello.Conn.RemoteAddr().String()
			return &tls.Config{
				MinVersion: tls.VersionTLS13, NextProtos: []string{"h2", "http/1.1"}, ClientAuth: tls.RequestClientCert,
				GetCertificate:         func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return h.certificate() },
				SessionTicketsDisabled: true,
				VerifyConnection: func(s tls.ConnectionState) error {
					if len(s.PeerCertificates) == 0 {
						return nil
					}
					_, err := h.host(&s, from)
					return err
				},
			}, nil
		},
	}
}

// certificate is this hub's own. It is made anew when two thirds of its time have passed.
func (h *Server) certificate() (*tls.Certificate, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if c := h.own; c != nil && h.o.Now().Before(c.Leaf.NotBefore.Add(c.Leaf.NotAfter.Sub(c.Leaf.NotBefore)*2/3)) {
		return c, nil
	}
	c, err := h.o.Authority.Server(h.o.Names)
	if err != nil {
		return nil, err
	}
	h.own = c
	return c, nil
}

// host is who a connection belongs to. It is asked at each request: a connection may outlive
// its certificate, or the host's good name.
func (h *Server) host(s *tls.ConnectionState, from string) (string, error) {
	if s == nil || len(s.PeerCertificates) == 0 {
		h.refused("", address(from), reasonUnknown, "it has no certificate")
		return "", ca.ErrUnknown
	}
	c := s.PeerCertificates[0]
	host, err := h.o.Authority.Host(c)
	if err == nil {
		return host, nil
	}
	reason, name := reasonUnknown, ""
	switch {
	case errors.Is(err, ca.ErrExpired):
		reason = reasonExpired
	case errors.Is(err, ca.ErrRevoked):
		reason = reasonRevoked
	}
	if reason != reasonUnknown && len(c.DNSNames) == 1 { // the authority vouches for the name
		name = c.DNSNames[0]
	}
	h.refused(name, address(from), reason, err.Error())
	return "", err
}

type hostKey struct{}

// admit lets a request in if its host is known and there is room. A request that is not let
// in has not been read.
func (h *Server) admit(next http.Handler) http.Handler {
	say := connect.NewErrorWriter()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != wirepb.HubEnrolProcedure {
			host, err := h.host(r.TLS, r.RemoteAddr)
			if err != nil {
				_ = say.Write(w, r, connect.NewError(connect.CodeUnauthenticated, err))
				return
			}
			r = r.WithContext(context.WithValue(r.Context(), hostKey{}, host))
		} else {
			r = r.WithContext(context.WithValue(r.Context(), hostKey{}, address(r.RemoteAddr)))
		}
		select {
		case h.slots <- struct{}{}:
		default:
			_ = say.Write(w, r, h.comeBack("the hub has as many requests as it may"))
			return
		}
		defer func() { <-h.slots }()
		next.ServeHTTP(w, r)
	})
}

// RetryAfter is the header that says how many seconds an agent should wait.
const RetryAfter = "Retry-After"

// comeBack spreads agents over some time: all of them were refused at once.
func (h *Server) comeBack(why string) *connect.Error {
	h.metrics.busy.Inc()
	e := connect.NewError(connect.CodeUnavailable, errors.New(why))
	e.Meta().Set(RetryAfter, strconv.Itoa(2+rand.IntN(8)))
	return e
}

// calls are what agents may call.
type calls struct{ *Server }

func (c calls) Send(ctx context.Context, r *wirepb.SendRequest) (*wirepb.SendResponse, error) {
	host, _ := ctx.Value(hostKey{}).(string)
	out, batches := c.read(host, r)
	if len(batches) > 0 {
		if err := c.keep(ctx, batches); err != nil {
			return nil, c.answer(host, err)
		}
	}
	if r.Orders {
		out.Orders, _ = c.ordersOf(host) // an agent without them asks for them alone, and is told why
	}
	return out, nil
}

// read unpacks the batches up to one that is deferred.
func (c calls) read(host string, r *wirepb.SendRequest) (*wirepb.SendResponse, []store.Batch) {
	out := &wirepb.SendResponse{}
	var batches []store.Batch
	bytes, rows := 0, 0
	for i, packed := range r.Batches {
		if bytes += len(packed); i >= wire.MostSendBatches || bytes > wire.MostSend || rows > mostGathered {
			out.Later = []byte("the request has more than one answer may settle")
			break
		}
		b, err := wire.Unpack(packed, host, c.o.Now())
		var bad *wire.Refusal
		if errors.As(err, &bad) {
			c.refused(host, "", string(bad.Reason), bad.Detail)
			if bad.Reason == wire.Newer {
				out.Later = []byte(bad.Error())
				break
			}
			out.Refused = append(out.Refused, &wirepb.Refused{Index: uint32(i), Reason: string(bad.Reason), Detail: bad.Detail})
		} else {
			batches, rows = append(batches, b), rows+rowsOf([]store.Batch{b})
			c.count(b)
		}
		out.Settled++
	}
	return out, batches
}

func (c calls) count(b store.Batch) {
	for kind, n := range map[string]int{"node": len(b.Nodes), "window": len(b.Windows), "decision": len(b.Decisions), "outcome": len(b.Outcomes)} {
		c.metrics.rows.WithLabelValues(kind).Add(float64(n))
	}
}

// keep waits until the store has them. The slot of the request bounds how many wait.
func (c calls) keep(ctx context.Context, batches []store.Batch) error {
	ctx, cancel := context.WithTimeout(ctx, storeLimit)
	defer cancel()
	a := &add{ctx: ctx, batches: batches, done: make(chan error, 1)}
	select {
	case c.adds <- a:
	case <-ctx.Done():
		return store.ErrBusy
	}
	select {
	case err := <-a.done:
		return err
	case <-ctx.Done():
		return fmt.Errorf("%w: it did not answer in time", store.ErrBusy)
	}
}

// answer: whatever the store says, the agent keeps its batches and comes again. Rows that
// a store refuses for good would be a defect here, so they are recorded by their host.
func (c calls) answer(host string, err error) error {
	if errors.Is(err, store.ErrBusy) {
		return c.comeBack(store.ErrBusy.Error())
	}
	c.refused(host, "", reasonStore, err.Error())
	return c.comeBack("the store did not take the rows: the hub's log says why")
}

func (c calls) Orders(ctx context.Context, _ *wirepb.OrdersRequest) (*wirepb.OrdersResponse, error) {
	host, _ := ctx.Value(hostKey{}).(string)
	return c.ordersOf(host)
}

func (c calls) ordersOf(host string) (*wirepb.OrdersResponse, error) {
	o, err := c.orders.read()
	if err != nil {
		c.o.Log.Error("orders: hosts follow their own policy when the last ones end", "error", err)
		return nil, connect.NewError(connect.CodeFailedPrecondition, errors.New("the hub's orders cannot be read"))
	}
	var rollouts []ServiceOrder
	if c.o.Rollouts != nil {
		rollouts = c.o.Rollouts(host)
	}
	return o.Message(c.o.Now(), rollouts), nil
}

func (c calls) Enrol(ctx context.Context, r *wirepb.EnrolRequest) (*wirepb.EnrolResponse, error) {
	from, _ := ctx.Value(hostKey{}).(string)
	host, der, err := c.o.Authority.Redeem(r.Token, r.Request)
	if err != nil {
		c.refused("", from, reasonToken, err.Error())
		return nil, connect.NewError(connect.CodePermissionDenied, err)
	}
	c.metrics.enrolled.Inc()
	c.o.Log.Info("enrolled", "host", host, "from", from)
	return &wirepb.EnrolResponse{Certificate: der, Authority: c.o.Authority.DER()}, nil
}

func (c calls) Renew(ctx context.Context, r *wirepb.RenewRequest) (*wirepb.RenewResponse, error) {
	host, _ := ctx.Value(hostKey{}).(string)
	der, err := c.o.Authority.Issue(host, r.Request)
	if err != nil {
		return nil, connect.NewError(connect.CodeInvalidArgument, err)
	}
	c.metrics.renewed.Inc()
	return &wirepb.RenewResponse{Certificate: der}, nil
}

// address is an address without its port: each connection has another.
func address(from string) string {
	if host, _, err := net.SplitHostPort(from); err == nil {
		return host
	}
	return from
}

// ServeLimits are the deadlines of a listener for agents.
func ServeLimits(s *http.Server) *http.Server {
	s.ReadHeaderTimeout, s.ReadTimeout, s.WriteTimeout, s.IdleTimeout = 10*time.Second, 30*time.Second, 90*time.Second, 3*time.Minute
	s.MaxHeaderBytes = 16 << 10
	return s
}
