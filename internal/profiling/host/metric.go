// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"homenode/internal/kernel"
	"homenode/internal/kernel/launch"
	"homenode/internal/kernel/unix"
	"homenode/internal/profiling"
)

// answerLimit is how long a metric may take to answer.
const answerLimit = 5 * time.Second

// meter reads a metric while the workload runs.
type meter struct {
	profiling.Metric
	client http.Client
	token  string // for a Prometheus; "": it asks for none
	wait   func(ctx context.Context, d time.Duration) error
	// lookBack is how old a number of Prometheus may be: as the warm-up, so that it is of this state.
	lookBack time.Duration
}

func newMeter(m profiling.Metric, token string) *meter {
	return &meter{Metric: m, token: token, wait: unix.Sleep, client: http.Client{
		Timeout: answerLimit, Transport: &http.Transport{Proxy: nil, DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error {
			return errors.New("it redirects: name the address itself")
		},
	}}
}

// checkURL allows this host only: a profile asks often, and sends nothing elsewhere.
func checkURL(text string) error {
	u, err := url.Parse(text)
	if err != nil {
		return fmt.Errorf("metric %.80q: it is no URL", text)
	}
	if !unix.ThisHost(u.Hostname()) {
		return fmt.Errorf("metric %.80q: the host must be this one: 127.0.0.1, ::1 or localhost", text)
	}
	return nil
}

// checkServer takes the address of a Prometheus, on this host or another.
func checkServer(text string) error {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return fmt.Errorf("--prometheus %.80q: want the address of a Prometheus, such as http://127.0.0.1:9090", text)
	case u.User != nil:
		return errors.New("--prometheus: a password in an address ends up in files: leave it out")
	case u.RawQuery != "" || u.Fragment != "":
		return fmt.Errorf("--prometheus %.80q: want the address alone; the query is --metric prometheus:QUERY", text)
	}
	return nil
}

// readToken reads the token of a Prometheus, which goes over TLS, or to this host. file "": none.
func readToken(file, server string) (string, error) {
	if file == "" {
		return "", nil
	}
	u, err := url.Parse(server)
	if err != nil || server == "" {
		return "", errors.New("--prometheus-token is for a Prometheus: name its address with --prometheus")
	}
	if u.Scheme != "https" && !unix.ThisHost(u.Hostname()) {
		return "", errors.New("--prometheus-token: others on the way could read it: want a Prometheus with https, or one on this host")
	}
	token, err := unix.ReadWord(file)
	if err != nil {
		return "", fmt.Errorf("--prometheus-token: %w", err)
	}
	return token, nil
}

// read reads the number once.
func (m *meter) read(ctx context.Context) (float64, error) {
	text, err := m.text(ctx)
	if err != nil {
		return 0, err
	}
	return m.Number(text)
}

func (m *meter) text(ctx context.Context) (string, error) {
	switch m.Kind {
	case profiling.File:
		data, err := unix.ReadAtMost(m.Arg, profiling.MaxText)
		if err != nil {
			return "", fmt.Errorf("read metric: %w", err)
		}
		return string(data), nil
	case profiling.URL:
		data, err := m.get(ctx, m.Arg)
		return string(data), err
	}
	o, err := launch.Run(ctx, kernel.Live(), launch.Placement{}, launch.Command{Argv: []string{"sh", "-c", m.Arg}, Timeout: answerLimit})
	if err != nil {
		return "", fmt.Errorf("read metric: %w", err)
	}
	if why := o.Failed(answerLimit); why != "" {
		return "", fmt.Errorf("read metric: %q %s: %s", m.Arg, why, strings.Join(o.Stderr, "; "))
	}
	return strings.Join(o.Stdout, "\n"), nil
}

// get asks an address, with a bound on its answer.
func (m *meter) get(ctx context.Context, address string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, fmt.Errorf("read metric: %w", err)
	}
	if m.token != "" {
		req.Header.Set("Authorization", "Bearer "+m.token)
	}
	answer, err := m.client.Do(req)
	if err != nil {
		return nil, fmt.Errorf("read metric: %w", err)
	}
	data, err := io.ReadAll(io.LimitReader(answer.Body, profiling.MaxText+1))
	defer answer.Body.Close()
	if m.Kind == profiling.PromQL && (answer.StatusCode == http.StatusUnauthorized || answer.StatusCode == http.StatusForbidden) {
		return nil, fmt.Errorf("read metric: %s answers %s: name the file of a token with --prometheus-token", req.URL.Redacted(), answer.Status)
	}
	explained := m.Kind == profiling.PromQL && answer.Header.Get("Content-Type") == "application/json" // errors, too
	switch {
	case err != nil:
		return nil, fmt.Errorf("read metric: %w", err)
	case answer.StatusCode != http.StatusOK && !explained:
		return nil, fmt.Errorf("read metric: %s answers %s", req.URL.Redacted(), answer.Status)
	case len(data) > profiling.MaxText:
		return nil, fmt.Errorf("read metric: %s answers more than %d bytes", req.URL.Redacted(), profiling.MaxText)
	}
	return data, nil
}

// gap is the time between two readings of a number that does not count up.
const gap = time.Second

// over reads the metric over a time: at both ends, and between them unless it counts up.
func (m *meter) over(ctx context.Context, length time.Duration) (float64, error) {
	if m.Kind == profiling.PromQL {
		return m.ask(ctx, length)
	}
	var all []profiling.Reading
	began := time.Now()
	for {
		v, err := m.read(ctx)
		if err != nil {
			return 0, err
		}
		at := time.Since(began)
		if all = append(all, profiling.Reading{At: at.Seconds(), Value: v}); at >= length {
			if err := m.written(began, all); err != nil {
				return 0, err
			}
			return m.Speed(all)
		}
		wait := min(gap, length-at)
		if m.Counter {
			wait = length - at
		}
		if err := m.wait(ctx, wait); err != nil {
			return 0, err
		}
	}
}

// written refuses a file that nothing wrote to while it was read, and whose number stood still.
func (m *meter) written(began time.Time, all []profiling.Reading) error {
	first := all[0].Value
	if m.Kind != profiling.File || slices.ContainsFunc(all, func(r profiling.Reading) bool { return r.Value != first }) {
		return nil
	}
	st, err := os.Stat(m.Arg)
	if err != nil {
		return fmt.Errorf("read metric: %w", err)
	}
	if st.ModTime().Before(began) {
		return fmt.Errorf("metric %s: it was not written while it was measured: it stopped reporting, or it is written less often than --for", m)
	}
	return nil
}
