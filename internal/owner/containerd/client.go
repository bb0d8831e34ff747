// SPDX-License-Identifier: Apache-2.0

package containerd

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"time"

	"homenode/internal/journal"
	"homenode/internal/kernel"
	"homenode/internal/kernel/cgroup"
)

// limit of one call. An update waits for runc, which takes some 50 ms.
const limit = 5 * time.Second

// quiet is for how long one who has not answered in time is not asked again: each question
// waits for limit, and a round has one for each workload.
const quiet = 10 * time.Second

// maxAnswer is far more than a task's description has.
const maxAnswer = 1 << 20

// client makes unary gRPC calls over containerd's socket. gRPC is HTTP/2 with a length
// before each message and the result in the trailers, and net/http speaks that without
// TLS; why not by a library: docs/decisions/0030-owners.md.
type client struct {
	socket string
	http   *http.Client
	limit  time.Duration // of one call
	silent time.Time     // until then he is not asked
}

func newClient(socket string) *client {
	t := &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", socket)
		},
		Protocols: new(http.Protocols), IdleConnTimeout: 30 * time.Second, DisableCompression: true,
	}
	t.Protocols.SetUnencryptedHTTP2(true)
	return &client{socket: socket, limit: limit, http: &http.Client{Transport: t}}
}

// get asks for the first process of a container.
func (c *client) get(namespace, id string) (process, error) {
	answer, err := c.call(getMethod, namespace, getRequest(id))
	if err != nil {
		return process{}, err
	}
	return parseGetResponse(answer)
}

// update sets one of a container's sets. What is not named stays as it is.
func (c *client) update(namespace, id, file, value string) error {
	var r struct {
		CPU struct {
			CPUs string `json:"cpus,omitempty"`
			Mems string `json:"mems,omitempty"`
		} `json:"cpu"`
	}
	if r.CPU.CPUs = value; file == cgroup.MemsFile {
		r.CPU.CPUs, r.CPU.Mems = "", value
	}
	resources, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("ask containerd for an update: %w", err)
	}
	_, err = c.call(updateMethod, namespace, updateRequest(id, string(resources)))
	if errors.Is(err, kernel.ErrMalformed) { // it was answered, nobody knows what
		return fmt.Errorf("%w (%w)", err, journal.ErrUnsure)
	}
	return err
}

// call is one unary call. A connection of a containerd that was started anew is noticed
// by its first use only: what is asked may be asked twice. Whether the first was done
// nobody knows.
func (c *client) call(method, namespace string, message []byte) ([]byte, error) {
	answer, err := c.send(method, namespace, message)
	if unreached := (*unreachedError)(nil); errors.As(err, &unreached) {
		c.http.CloseIdleConnections()
		answer, err = c.send(method, namespace, message)
		if err != nil && method == updateMethod {
			err = fmt.Errorf("%w (%w)", err, journal.ErrUnsure)
		}
	}
	return answer, err
}

// send is grpc's doc/PROTOCOL-HTTP2.md.
func (c *client) send(method, namespace string, message []byte) ([]byte, error) {
	if time.Now().Before(c.silent) {
		return nil, fmt.Errorf("reach containerd at %s: %w within %s just now: it is asked again in a moment", c.socket, journal.ErrNoAnswer, c.limit)
	}
	ctx, cancel := context.WithTimeout(context.Background(), c.limit)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://containerd"+method, bytes.NewReader(frame(message)))
	if err != nil {
		return nil, fmt.Errorf("ask containerd for %s: %w", method, err)
	}
	req.Header = http.Header{
		"Content-Type": {"application/grpc"}, "Te": {"trailers"}, "User-Agent": {"homenode"},
		"Grpc-Timeout": {strconv.Itoa(int(limit/time.Second)) + "S"}, "Containerd-Namespace": {namespace},
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, c.unreached(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return nil, c.unreached(err)
	}
	status, text := result(resp)
	if status != codeOK {
		return nil, c.refused(method, status, text)
	}
	return unframe(data)
}

// frame puts before a message that it is not compressed, and its length.
func frame(message []byte) []byte {
	return append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(message))), message...)
}

func unframe(data []byte) ([]byte, error) {
	if len(data) < 5 || data[0] != 0 || uint64(len(data)-5) != uint64(binary.BigEndian.Uint32(data[1:])) {
		return nil, fmt.Errorf("read containerd's answer: %d bytes are not one uncompressed message (%w)", len(data), kernel.ErrMalformed)
	}
	return data[5:], nil
}

// code is gRPC's, of the few that matter here.
type code int

const (
	codeNone               code = -1 // whoever answers does not speak gRPC
	codeOK                 code = 0
	codeCancelled          code = 1
	codeUnknown            code = 2
	codeInvalidArgument    code = 3
	codeDeadlineExceeded   code = 4
	codeNotFound           code = 5
	codePermissionDenied   code = 7
	codeFailedPrecondition code = 9
	codeUnimplemented      code = 12
	codeInternal           code = 13 // of gRPC itself: a stream that broke
	codeUnavailable        code = 14
)

// result reads the trailers; what fails at once has them as headers.
func result(resp *http.Response) (code, string) {
	at := resp.Trailer
	if at.Get("Grpc-Status") == "" {
		at = resp.Header
	}
	n, err := strconv.Atoi(at.Get("Grpc-Status"))
	if err != nil {
		return codeNone, fmt.Sprintf("no gRPC answer: %s", resp.Status)
	}
	text, err := url.PathUnescape(at.Get("Grpc-Message"))
	if err != nil {
		text = at.Get("Grpc-Message")
	}
	return code(n), text
}

// refused tells refusals apart.
func (c *client) refused(method string, status code, text string) error {
	said := fmt.Sprintf("ask containerd for %s: it answers %d %.300q", method, status, text)
	switch status {
	case codeNotFound:
		return fmt.Errorf("%s (%w)", said, kernel.ErrGone)
	case codeUnimplemented:
		return fmt.Errorf("%s: containerd 1.0 or newer is wanted at %s (%w; %w)", said, c.socket, journal.ErrRefused, journal.ErrNoAnswer)
	case codePermissionDenied:
		return fmt.Errorf("%s (%w)", said, kernel.ErrNotPermitted)
	case codeDeadlineExceeded, codeUnavailable, codeCancelled, codeInternal, codeNone:
		return fmt.Errorf("%s (%w): it is asked again; look at 'systemctl status containerd' if that lasts", said, journal.ErrNoAnswer)
	case codeInvalidArgument, codeFailedPrecondition:
		return fmt.Errorf("%s (%w)", said, journal.ErrRefused)
	}
	return errors.New(said)
}

// unreached says what to do where there was no answer.
func (c *client) unreached(err error) error {
	switch {
	case errors.Is(err, os.ErrPermission):
		return fmt.Errorf("reach containerd at %s: %w: run homenode as root, which the socket is for", c.socket, kernel.ErrNotPermitted)
	case os.IsTimeout(err), errors.Is(err, context.DeadlineExceeded):
		c.silent = time.Now().Add(quiet)
		return fmt.Errorf("reach containerd at %s: %w within %s: it is asked again; look at 'systemctl status containerd' if that lasts", c.socket, journal.ErrNoAnswer, c.limit)
	}
	if op := (*net.OpError)(nil); errors.As(err, &op) {
		err = op.Err
	}
	return &unreachedError{fmt.Sprintf("reach containerd at %s: %s: start containerd, or set containerd_socket to where it listens", c.socket, err)}
}

// unreachedError is that of a connection that was refused, or ended.
type unreachedError struct{ text string }

func (e *unreachedError) Error() string { return e.text }
func (e *unreachedError) Unwrap() error { return journal.ErrNoAnswer }
