// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"context"
	"errors"
	"log"
	"net"
	"net/http"
	"sync"
	"time"

	"homenode/internal/store"
)

// maintainEvery is how often rows are rolled up and forgotten.
const maintainEvery = time.Minute

// Run serves agents and people until the context ends, and keeps the store in order. people
// may be nil. Requests under way get some seconds to end.
func (h *Server) Run(ctx context.Context, agents, people net.Listener, pages http.Handler, keep store.Retention) error {
	quiet := log.New(discard{h}, "", 0)
	servers := []*http.Server{ServeLimits(&http.Server{Handler: h.Handler(), TLSConfig: h.TLS(), ErrorLog: quiet})}
	failed := make(chan error, 2)
	var all sync.WaitGroup
	all.Go(func() { failed <- servers[0].ServeTLS(agents, "", "") })
	if people != nil {
		servers = append(servers, ServeLimits(&http.Server{Handler: pages, ErrorLog: quiet}))
		all.Go(func() { failed <- servers[1].Serve(people) })
	}
	around, end := context.WithCancel(ctx)
	all.Go(func() { h.maintain(around, keep) })
	var err error
	select {
	case <-ctx.Done():
	case err = <-failed:
	}
	end()
	late, stop := context.WithTimeout(context.Background(), 10*time.Second)
	defer stop()
	for _, s := range servers {
		if s.Shutdown(late) != nil {
			_ = s.Close()
		}
	}
	all.Wait()
	if errors.Is(err, http.ErrServerClosed) {
		err = nil
	}
	return err
}

func (h *Server) maintain(ctx context.Context, keep store.Retention) {
	tick := time.NewTicker(maintainEvery)
	defer tick.Stop()
	for {
		if err := h.store.Maintain(ctx, h.o.Now(), keep); err != nil && ctx.Err() == nil {
			h.o.Log.Error("the store is not rolled up", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// discard logs what net/http says of connections that fail, for those who look for it.
type discard struct{ h *Server }

func (d discard) Write(text []byte) (int, error) {
	d.h.o.Log.Debug("connection", "problem", string(text))
	return len(text), nil
}
