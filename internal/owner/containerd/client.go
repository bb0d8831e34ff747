// SPDX-License-Identifier: Apache-2.0

package containerd

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"homenode/internal/journal"
	"homenode/internal/kernel"
	"homenode/internal/kernel/cgroup"
	"homenode/internal/owner"
)

// maxAnswer is far more than a task's description has.
const maxAnswer = 1 << 20

// client makes unary gRPC calls over containerd's socket. gRPC is HTTP/2 with a length
// before each message and the result in the trailers, and net/http speaks that without
// TLS. docs/decisions/0030-owners.md says why there is no library.
type client struct{ *owner.Client }

func newClient(socket string) *client {
	t := &http.Transport{Protocols: new(http.Protocols)}
	t.Protocols.SetUnencryptedHTTP2(true)
	return &client{owner.NewClient(owner.Daemon{
		Name: "containerd", Unit: "containerd", Socket: socket, MaxAnswer: maxAnswer,
		Denied: "run homenode as root, which the socket is for",
		Absent: "start containerd, or set containerd_socket to where it listens",
	}, t)}
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
	if errors.Is(err, kernel.ErrMalformed) { // there was an answer, but it cannot be read
		return fmt.Errorf("%w (%w)", err, journal.ErrUnsure)
	}
	return err
}

// call is one unary call.
func (c *client) call(method, namespace string, message []byte) (answer []byte, err error) {
	err = c.Persist(method == updateMethod, func() error {
		answer, err = c.send(method, namespace, message)
		return err
	})
	return answer, err
}

// send follows grpc's doc/PROTOCOL-HTTP2.md.
func (c *client) send(method, namespace string, message []byte) ([]byte, error) {
	header := http.Header{
		"Content-Type": {"application/grpc"}, "Te": {"trailers"}, "User-Agent": {"homenode"},
		"Grpc-Timeout": {strconv.Itoa(int(owner.AnswerLimit/time.Second)) + "S"}, "Containerd-Namespace": {namespace},
	}
	resp, data, err := c.Send(http.MethodPost, method, header, frame(message))
	if err != nil {
		return nil, err
	}
	status, text := result(resp)
	if status != codeOK {
		return nil, c.refused(method, status, text)
	}
	return unframe(data)
}

// frame prepends the length of a message, and that it is not compressed.
func frame(message []byte) []byte {
	return append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(message))), message...)
}

func unframe(data []byte) ([]byte, error) {
	if len(data) < 5 || data[0] != 0 || uint64(len(data)-5) != uint64(binary.BigEndian.Uint32(data[1:])) {
		return nil, fmt.Errorf("read containerd's answer: %d bytes are not one uncompressed message (%w)", len(data), kernel.ErrMalformed)
	}
	return data[5:], nil
}

// code is a status of gRPC, of the few that matter here.
type code int

const (
	codeNone               code = -1 // the answer is not gRPC
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

// result reads the trailers. A call that fails at once has them as headers.
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

// refused turns a status into an error.
func (c *client) refused(method string, status code, text string) error {
	said := fmt.Sprintf("ask containerd for %s: it answers %d %.300q", method, status, text)
	switch status {
	case codeNotFound:
		return fmt.Errorf("%s (%w)", said, kernel.ErrGone)
	case codeUnimplemented:
		return fmt.Errorf("%s: containerd 1.0 or newer is wanted at %s (%w; %w)", said, c.Socket, journal.ErrRefused, journal.ErrNoAnswer)
	case codePermissionDenied:
		return fmt.Errorf("%s (%w)", said, kernel.ErrNotPermitted)
	case codeDeadlineExceeded, codeUnavailable, codeCancelled, codeInternal, codeNone:
		return fmt.Errorf("%s (%w): it is asked again; look at 'systemctl status containerd' if that lasts", said, journal.ErrNoAnswer)
	case codeInvalidArgument, codeFailedPrecondition:
		return fmt.Errorf("%s (%w)", said, journal.ErrRefused)
	}
	return errors.New(said)
}
