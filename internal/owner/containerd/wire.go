// SPDX-License-Identifier: Apache-2.0

package containerd

import (
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"

	"homenode/internal/kernel"
)

// The messages, of services/tasks/v1/tasks.proto and types/task/task.proto of
// The messages, of services/tasks/v1/tasks.proto and types/task/task.proto of
//
//	GetRequest         1 container_id
//	GetResponse        1 process
//	  Process          2 id   3 pid   4 status
//	UpdateTaskRequest  1 container_id   2 resources
//	  Any              1 type_url       2 value
const (
	getMethod    = "/containerd.services.tasks.v1.Tasks/Get"
	updateMethod = "/containerd.services.tasks.v1.Tasks/Update"

	// resourcesType is what the runtime expects: LinuxResources of OCI's runtime
	// specification, as JSON.
	resourcesType = "types.containerd.io/opencontainers/runtime-spec/1/LinuxResources"
)

// process is the first process of a container.
type process struct {
	pid    int
	status uint64
}

// running and others are the statuses in which a task has a cgroup (Status in
// task.proto).
const (
	statusStopped = 3
)

func appendString(b []byte, field protowire.Number, value string) []byte {
	return protowire.AppendString(protowire.AppendTag(b, field, protowire.BytesType), value)
}

func getRequest(id string) []byte { return appendString(nil, 1, id) }

func updateRequest(id, resources string) []byte {
	holder := appendString(appendString(nil, 1, resourcesType), 2, resources)
	return appendString(appendString(nil, 1, id), 2, string(holder))
}

// parseGetResponse reads the process of a GetResponse.
func parseGetResponse(data []byte) (p process, err error) {
	found := false
	err = fields(data, func(n protowire.Number, _ uint64, part []byte) error {
		if n != 1 || part == nil {
			return nil
		}
		found = true
		return fields(part, p.set)
	})
	if err == nil && (!found || p.pid < 0) {
		err = fmt.Errorf("no process in it (%w)", kernel.ErrMalformed)
	}
	if err != nil {
		return process{}, fmt.Errorf("read containerd's task: %w", err)
	}
	return p, nil
}

func (p *process) set(n protowire.Number, value uint64, _ []byte) error {
	switch n {
	case 3:
		p.pid = int(uint32(value))
	case 4:
		p.status = value
	}
	return nil
}

// fields calls each for every field, with its number or its bytes. It skips fields of
// other types.
func fields(data []byte, each func(n protowire.Number, value uint64, part []byte) error) error {
	for len(data) > 0 {
		n, kind, size := protowire.ConsumeTag(data)
		if size < 0 {
			return fmt.Errorf("%w (%w)", protowire.ParseError(size), kernel.ErrMalformed)
		}
		data = data[size:]
		var value uint64
		var part []byte
		switch kind {
		case protowire.VarintType:
			value, size = protowire.ConsumeVarint(data)
		case protowire.BytesType:
			part, size = protowire.ConsumeBytes(data)
		default:
			size = protowire.ConsumeFieldValue(n, kind, data)
		}
		if size < 0 {
			return fmt.Errorf("field %d: %w (%w)", n, protowire.ParseError(size), kernel.ErrMalformed)
		}
		data = data[size:]
		if err := each(n, value, part); err != nil {
			return err
		}
	}
	return nil
}
