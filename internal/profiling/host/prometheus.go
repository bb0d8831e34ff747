// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"net/url"
	"strconv"
	"strings"
	"time"

	"homenode/internal/profiling"
)

// moments is at how many moments of a measurement a query is asked for, at most; leastStep is the
// time between two of them, at least.
const (
	moments   = 100
	leastStep = time.Second
)

// ask lets a measurement pass, and asks Prometheus about it. Times are those of its own clock.
func (m *meter) ask(ctx context.Context, length time.Duration) (float64, error) {
	began, err := m.serverTime(ctx)
	if err != nil {
		return 0, err
	}
	if err := m.wait(ctx, length); err != nil {
		return 0, err
	}
	if m.AtEnd() {
		found, err := m.query(ctx, "query", url.Values{"query": {m.Query(length)}})
		if err != nil {
			return 0, err
		}
		return m.Speed(found)
	}
	ended, err := m.serverTime(ctx)
	if err != nil {
		return 0, err
	}
	step := max(length/moments, leastStep).Seconds()
	// Otherwise a number of up to five minutes ago stands for each moment: of another state.
	lookBack := max(m.lookBack, leastStep).Seconds()
	found, err := m.query(ctx, "query_range", url.Values{
		"query": {m.Arg}, "start": {seconds(began)}, "end": {seconds(ended)}, "step": {seconds(step)}, "lookback_delta": {seconds(lookBack)},
	})
	if err == nil {
		err = profiling.CheckReported(len(found), 1+int((ended-began)/step))
	}
	if err != nil {
		return 0, err
	}
	return m.Speed(found)
}

func seconds(v float64) string { return strconv.FormatFloat(v, 'f', 3, 64) }

func (m *meter) serverTime(ctx context.Context) (float64, error) {
	found, err := m.query(ctx, "query", url.Values{"query": {"time()"}})
	if err != nil {
		return 0, err
	}
	return found[0].Value, nil
}

// query asks one of Prometheus's endpoints (prometheus.io/docs, HTTP API).
func (m *meter) query(ctx context.Context, endpoint string, values url.Values) ([]profiling.Reading, error) {
	data, err := m.get(ctx, strings.TrimSuffix(m.Server, "/")+"/api/v1/"+endpoint+"?"+values.Encode())
	if err != nil {
		return nil, err
	}
	return m.Points(data)
}
