// SPDX-License-Identifier: Apache-2.0

package docker

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"homenode/internal/journal"
	"homenode/internal/kernel"
	"homenode/internal/owner"
)

// maxAnswer is far more than a container's description has.
const maxAnswer = 4 << 20

// Versions of the API that homenode speaks. CpusetCpus of an update is older than the
// oldest; the three calls have not changed since.
const (
	oldestAPI = 24 // 1.24, Docker 1.12 of 2016
	newestAPI = 52 // 1.52, Docker 29
)

// client speaks to Docker's socket.
type client struct {
	*owner.Client
	api string // "/v1.41"; "": not asked yet
}

func newClient(socket string) *client {
	return &client{Client: owner.NewClient(owner.Daemon{
		Name: "Docker", Unit: "docker", Socket: socket, MaxAnswer: maxAnswer,
		Denied: "run homenode as root, or add its user to the socket's group (usually docker)",
		Absent: "start dockerd, or set docker_socket to where it listens",
	}, &http.Transport{MaxIdleConns: 1})}
}

// described is what is read of GET /containers/{id}/json.
type described struct {
	ID    string `json:"Id"`
	State struct {
		Pid int // 0: the container does not run
	}
	HostConfig struct {
		CpusetCpus string
		CpusetMems string
	}
}

func (c *client) inspect(id string) (d described, err error) {
	err = c.call(http.MethodGet, "/containers/"+url.PathEscape(id)+"/json", nil, &d)
	if err == nil && (d.ID == "" || !strings.HasPrefix(d.ID, id)) { // from a proxy, or from a daemon in trouble
		return described{}, fmt.Errorf("ask Docker for container %.80q: it answers with %.80q (%w)", id, d.ID, kernel.ErrMalformed)
	}
	return d, err
}

// update sets one of a container's sets: name is "CpusetCpus" or "CpusetMems".
func (c *client) update(id, name, value string) error {
	return c.call(http.MethodPost, "/containers/"+url.PathEscape(id)+"/update", map[string]string{name: value}, nil)
}

// negotiate finds the newest version that both sides speak.
func (c *client) negotiate() error {
	if c.api != "" {
		return nil
	}
	var v struct{ Version, APIVersion, MinAPIVersion string }
	if err := c.send(http.MethodGet, "/version", nil, &v); err != nil {
		return err
	}
	api, err := commonAPI(v.APIVersion, v.MinAPIVersion)
	if err != nil {
		return fmt.Errorf("speak with Docker %.40q at %s: %w", v.Version, c.Socket, err)
	}
	c.api = api
	return nil
}

// errNoCommon: Docker cannot be asked. That says nothing about earlier requests.
func errNoCommon() error {
	return fmt.Errorf("%w: %w that homenode understands", journal.ErrRefused, journal.ErrNoAnswer)
}

// commonAPI is the newest version of the API that both sides speak, as a path:
//
//	"1.41", "1.12" → "/v1.41"
//	"1.60", "1.44" → "/v1.52"
func commonAPI(newest, oldest string) (string, error) {
	theirs, ok := minor(newest)
	if !ok {
		return "", fmt.Errorf("its API's version is %.20q: want 1.N (%w)", newest, kernel.ErrMalformed)
	}
	from, ok := minor(oldest)
	if !ok {
		from = oldestAPI // daemons before 1.25 do not report it
	}
	switch use := min(theirs, newestAPI); {
	case theirs < oldestAPI:
		return "", fmt.Errorf("it speaks API 1.%d at most, homenode 1.%d at least: update Docker (%w)", theirs, oldestAPI, errNoCommon())
	case use < from:
		return "", fmt.Errorf("it speaks API 1.%d at least, homenode 1.%d at most: update homenode (%w)", from, newestAPI, errNoCommon())
	default:
		return fmt.Sprintf("/v1.%d", use), nil
	}
}

func minor(version string) (int, bool) {
	text, ok := strings.CutPrefix(version, "1.")
	n, err := strconv.Atoi(text)
	return n, ok && err == nil && n >= 0
}

// call is one request, in the version that both sides speak. After an upgrade or
// downgrade the daemon answers 400 to a version it does not know; call then negotiates
// again.
func (c *client) call(method, path string, body, answer any) error {
	err := c.once(method, path, body, answer)
	if errors.Is(err, errVersion) {
		c.api = ""
		err = c.once(method, path, body, answer)
	}
	if errors.Is(err, journal.ErrNoAnswer) {
		c.api = ""
	}
	return err
}

func (c *client) once(method, path string, body, answer any) error {
	if err := c.negotiate(); err != nil {
		return err
	}
	return c.Persist(method != http.MethodGet, func() error { return c.send(method, c.api+path, body, answer) })
}

func (c *client) send(method, path string, body, answer any) error {
	var text []byte
	header := http.Header{}
	if body != nil {
		var err error
		if text, err = json.Marshal(body); err != nil {
			return fmt.Errorf("ask Docker for %s: %w", path, err)
		}
		header.Set("Content-Type", "application/json")
	}
	resp, data, err := c.Send(method, path, header, text)
	if err != nil {
		return err
	}
	if resp.StatusCode/100 != 2 {
		return refused(method+" "+path, resp.StatusCode, data)
	}
	if answer == nil {
		return nil
	}
	if err := json.Unmarshal(data, answer); err != nil {
		return fmt.Errorf("read Docker's answer to %s: %w (%w)", path, err, kernel.ErrMalformed)
	}
	return nil
}

// refusal is an answer other than success.
type refusal struct {
	status int
	text   string
	kind   error // nil: Docker's own trouble
}

func (r *refusal) Error() string { return r.text }
func (r *refusal) Unwrap() error { return r.kind }

// errVersion is the answer to a version of the API that the daemon does not speak.
var errVersion = errors.New("another version of the API is wanted")

// refused turns an answer into an error. Docker's text is in {"message": "…"}.
//
//	404  no such container; any other text concerns the question, not the container
//	502, 503, 504  from a proxy: it reached no daemon, or did not wait
//	400  it refuses the value; "not available": CPUs or nodes that are offline
//	403, 409  not now, or not for us
//	500  its own trouble: often runc's
func refused(call string, status int, data []byte) error {
	var m struct {
		Message string `json:"message"`
	}
	if json.Unmarshal(data, &m) != nil {
		m.Message = string(data)
	}
	r := &refusal{status: status}
	switch {
	case status == http.StatusNotFound && strings.HasPrefix(m.Message, "No such container"):
		r.kind = kernel.ErrGone
	case status == http.StatusNotFound, status >= http.StatusBadGateway && status <= http.StatusGatewayTimeout:
		r.kind = journal.ErrNoAnswer
	case status == http.StatusBadRequest && strings.Contains(m.Message, "client version"):
		r.kind = errVersion
	case strings.Contains(m.Message, "are not available"):
		r.kind = journal.ErrNeedsValue
	case status/100 == 4:
		r.kind = journal.ErrRefused
	}
	r.text = fmt.Sprintf("ask Docker for %s: it answers %d %.300q", call, status, strings.TrimSpace(m.Message))
	return r
}
