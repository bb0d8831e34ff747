// SPDX-License-Identifier: Apache-2.0

package query

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"homenode/internal/kernel/unix"
	"homenode/internal/render"
	"homenode/internal/schema"
	"homenode/internal/store"
)

// Client asks through a hub.
type Client struct {
	hub   *url.URL
	http  *http.Client
	token string
}

// NewClient asks the hub at an address such as https://hub:8443. A token is not sent without
// TLS, except to this host.
func NewClient(address, token string, c *http.Client) (*Client, error) {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" || u.RawQuery != "" || u.User != nil {
		return nil, fmt.Errorf("the hub's address is %q: want one such as https://hub.example:8443", address)
	}
	if name := u.Hostname(); token != "" && u.Scheme == "http" && !unix.ThisHost(name) {
		return nil, fmt.Errorf("the hub's address is %q: a token is sent over https only", address)
	}
	own := *c
	own.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &Client{u, &own, token}, nil
}

// Ask answers a question.
func (c *Client) Ask(ctx context.Context, q store.Question) (Answer, error) {
	return c.send(ctx, http.MethodGet, []string{"api/v1/query", string(q.Topic)}, Values(q), "")
}

// SQL answers a query of the hub's store.
func (c *Client) SQL(ctx context.Context, text string, most int) (Answer, error) {
	return c.send(ctx, http.MethodPost, []string{"api/v1/sql"}, url.Values{"most": {strconv.Itoa(most)}}, text)
}

func (c *Client) send(ctx context.Context, method string, path []string, v url.Values, body string) (Answer, error) {
	to := c.hub.JoinPath(path...)
	to.RawQuery = v.Encode()
	r, err := http.NewRequestWithContext(ctx, method, to.String(), strings.NewReader(body))
	if err != nil {
		return Answer{}, fmt.Errorf("ask the hub: %w", err)
	}
	if c.token != "" {
		r.Header.Set("Authorization", "Bearer "+c.token)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/sql")
	}
	got, err := c.http.Do(r)
	if err != nil {
		return Answer{}, fmt.Errorf("ask the hub: %w", err)
	}
	defer got.Body.Close()
	data, err := io.ReadAll(io.LimitReader(got.Body, mostAnswer+1))
	if err == nil && len(data) > mostAnswer {
		err = errors.New("its answer is too large")
	}
	if err != nil {
		return Answer{}, fmt.Errorf("read the answer of %s: %w", c.hub.Host, err)
	}
	if got.StatusCode != http.StatusOK {
		return Answer{}, fmt.Errorf("%s answers %q: %s", c.hub.Host, got.Status, reason(data))
	}
	return schema.Decode[Answer](data, "the answer of "+c.hub.Host, Schema)
}

// reason is what a refusal says.
func reason(data []byte) string {
	var f Failure
	if json.Unmarshal(data, &f) != nil || f.Error == "" {
		return "it is no hub of homenode, or something stands before it"
	}
	return render.Clip(render.Printable(f.Error), 500)
}
