// SPDX-License-Identifier: Apache-2.0

package containerd

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"homenode/internal/action"
	"homenode/internal/journal"
	"homenode/internal/kernel"
	"homenode/internal/kernel/kerneltest"
	"homenode/internal/owner/ownertest"
	"homenode/internal/set"
	"homenode/internal/unit"
)

var (
	ctx     = context.Background()
	open    = ownertest.Open
	must    = ownertest.Must
	setCPUs = action.Step{Kind: action.SetCPUs, Workload: at, CPUs: set.FromCPUs(2, 3)}
	setMems = action.Step{Kind: action.SetMems, Workload: at, Nodes: set.FromNodes(1)}
	move    = action.Step{Kind: action.MovePages, Workload: at, Nodes: set.FromNodes(1), Budget: unit.MiB}
)

func TestBindAndPutBack(t *testing.T) {
	f := newFake(t)
	o, j := f.owner(), open(t, t.TempDir())
	must(t, j, o, setCPUs, move, setMems, setCPUs)
	if got := strings.Join(f.asked, " "); got != "Get Update MOVE to 1 Get Update Get" || f.file("cpuset.cpus") != "2-3" || f.file("cpuset.mems") != "1" {
		t.Errorf("did %s; the cgroup has %s, %s", got, f.file("cpuset.cpus"), f.file("cpuset.mems"))
	}
	if !j.Ours(at, "cpuset.mems", "1") {
		t.Error("the journal does not know the owner of the cgroup's value")
	}
	got, err := j.Restore(ctx, f.owner()) // a new one, which knows no cgroup
	if err != nil || len(got) != 2 || got[0].Result != journal.Equivalent || f.file("cpuset.cpus") != "0-7" || f.file("cpuset.mems") != "0-1" {
		t.Errorf("%v, %v; %q, %q", got, err, f.file("cpuset.cpus"), f.file("cpuset.mems"))
	}
	if len(j.Outstanding()) != 0 {
		t.Errorf("%v", j.Outstanding())
	}
}

func TestOriginalAndDrift(t *testing.T) {
	f := newFake(t)
	kerneltest.Write(t, f.root, kerneltest.Files{top + at + "/cpuset.cpus": "0-5\n"})
	o, j := f.owner(), open(t, t.TempDir())
	must(t, j, o, setCPUs, setMems)
	kerneltest.Write(t, f.root, kerneltest.Files{top + at + "/cpuset.mems": "0\n"})
	if out := j.Wrap(o).Apply(ctx, setMems); out.Status != action.Drifted {
		t.Errorf("%s: %s", out.Status, out.Detail)
	}
	got, err := j.Restore(ctx, o)
	if err != nil || got[0].Result != journal.Left || got[1].Result != journal.PutBack || f.file("cpuset.cpus") != "0-5" || f.file("cpuset.mems") != "0" {
		t.Errorf("%v, %v", got, err)
	}
}

func TestGoneContainers(t *testing.T) {
	f := newFake(t)
	o, j := f.owner(), open(t, t.TempDir())
	must(t, j, o, setCPUs, setMems)
	f.status = statusStopped
	if out := j.Wrap(o).Apply(ctx, setMems); out.Status != action.Gone {
		t.Errorf("%s: %s", out.Status, out.Detail)
	}
	got, err := j.Restore(ctx, f.owner())
	if err != nil || len(got) != 2 || got[0].Result != journal.Vanished || len(j.Outstanding()) != 0 {
		t.Errorf("%v, %v", got, err)
	}
}

func TestRefusals(t *testing.T) {
	for _, c := range []struct {
		name     string
		do       func(f *fakeTasks)
		workload string
		status   action.Status
		text     string
	}{
		{"down", func(f *fakeTasks) { f.close() }, at, action.Failed, "start containerd, or set containerd_socket"},
		{"not ours", func(f *fakeTasks) { kerneltest.Write(t, f.root, shim(69, "k8s.io", "pod")) }, at, action.Refused, "it is the kubelet's"},
		{"Docker's", func(f *fakeTasks) { kerneltest.Write(t, f.root, shim(69, "moby", "own")) }, at, action.Refused, "so it is Docker's"},
		{"no namespace", func(f *fakeTasks) {
			kerneltest.Write(t, f.root, kerneltest.Files{top + "/system.slice/nerdctl-1a.scope/cpuset.cpus": "\n"})
		}, "/system.slice/nerdctl-1a.scope", action.Refused, "tells its namespace"},
		{"inner", func(f *fakeTasks) {
			kerneltest.Write(t, f.root, kerneltest.Files{top + at + "/in/cpuset.cpus": "\n", top + at + "/in/cgroup.procs": "70\n"})
		}, at + "/in", action.Refused, "within or around"},
		{"around", func(f *fakeTasks) {
			kerneltest.Write(t, f.root, kerneltest.Files{top + "/default/cgroup.procs": "70\n"})
		}, "/default", action.Refused, "within or around"},
		{"gone", func(f *fakeTasks) { kerneltest.Remove(t, f.root, top+at) }, at, action.Gone, "act on"},
		{"unknown", func(f *fakeTasks) { kerneltest.Write(t, f.root, shim(69, "default", "other")) }, at, action.Gone, "not found: 100%"},
		{"old", func(f *fakeTasks) {
			f.fail = func(string) (code, string) { return codeUnimplemented, "unknown service" }
		}, at, action.Refused, "containerd 1.0 or newer"},
		{"runc", func(f *fakeTasks) {
			f.fail = func(m string) (code, string) {
				if m == "Update" {
					return codeUnknown, "runc\x1b[2Jdid not terminate successfully"
				}
				return codeOK, ""
			}
		}, at, action.Failed, "terminate successfully"},
		{"denied", func(f *fakeTasks) { f.fail = func(string) (code, string) { return codePermissionDenied, "no" } }, at, action.Refused, "permi"},
		{"argument", func(f *fakeTasks) { f.fail = func(string) (code, string) { return codeInvalidArgument, "bad" } }, at, action.Refused, "bad"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFake(t)
			o, j := f.owner(), open(t, t.TempDir())
			c.do(f)
			step := setCPUs
			step.Workload = c.workload
			out := j.Wrap(o).Apply(ctx, step)
			if out.Status != c.status || !strings.Contains(out.Detail, c.text) || strings.ContainsAny(out.Detail, "\x1b") {
				t.Errorf("%s: %s", out.Status, out.Detail)
			}
			if len(j.Outstanding()) != 0 {
				t.Errorf("what was refused is on record: %v", j.Outstanding())
			}
		})
	}
}

// A socket that may not be opened; root may open all.
func TestSocketWithoutPermission(t *testing.T) {
	c := newClient("/x")
	c.HTTP.Transport = ownertest.Denied{}
	_, err := c.get("default", "own")
	if !errors.Is(err, kernel.ErrNotPermitted) || !strings.Contains(err.Error(), "root") {
		t.Error(err)
	}
}

// A request without an answer may be done: it stays on record, and is put back as soon as
// containerd answers.
func TestNoAnswer(t *testing.T) {
	f := newFake(t)
	o, j := f.owner(), open(t, t.TempDir())
	f.after = func() { panic(http.ErrAbortHandler) } // done, and then containerd ends
	out := j.Wrap(o).Apply(ctx, setCPUs)
	if out.Status != action.Failed || len(j.Outstanding()) != 1 || f.file("cpuset.cpus") != "2-3" {
		t.Errorf("%s: %s; %v", out.Status, out.Detail, j.Outstanding())
	}
	f.close()
	if got, err := j.Restore(ctx, f.owner()); err != nil || len(got) != 1 || got[0].Result != journal.Kept || len(j.Outstanding()) != 1 {
		t.Errorf("down: %v, %v", got, err)
	}
	f.after = nil
	f.listen()
	if got, err := j.Restore(ctx, o); err != nil || f.file("cpuset.cpus") != "0-7" || len(j.Outstanding()) != 0 {
		t.Errorf("up again: %v, %v", got, err)
	}
}

// A crash before and after every call, while binding and while restoring.
func TestEveryCrash(t *testing.T) {
	points := 0
	for stop := 1; ; stop++ {
		f := newFake(t)
		kerneltest.Write(t, f.root, kerneltest.Files{top + at + "/cpuset.cpus": "0-5\n"})
		dir := t.TempDir()
		o, j := f.owner(), open(t, dir)
		o.client.HTTP.Transport = &ownertest.Crashing{RoundTripper: o.client.HTTP.Transport, Stop: stop}
		if !ownertest.Crashed(func() {
			for _, s := range []action.Step{setCPUs, move, setMems} {
				j.Wrap(o).Apply(ctx, s)
			}
			_, _ = j.Restore(ctx, o)
		}) {
			break
		}
		points++
		// The journal's lock belongs to this process, and goes with it.
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
		j = open(t, dir)
		got, err := j.Restore(ctx, f.owner())
		if m := f.file("cpuset.mems"); err != nil || f.file("cpuset.cpus") != "0-5" || m != "" && m != "0-1" || len(j.Outstanding()) != 0 {
			t.Errorf("stopped at %d: %q, %q: %v, %v", stop, f.file("cpuset.cpus"), m, got, err)
		}
	}
	if points < 12 {
		t.Errorf("%d points: too few to mean anything", points)
	}
	t.Logf("%d crash points", points)
}

// The bytes are those of containerd's own library (api v1.10.0 with protobuf-go).
func TestWire(t *testing.T) {
	const update = "\n\x03shy\x12Z\n@types.containerd.io/opencontainers/runtime-spec/1/LinuxResources\x12\x16{\"cpu\":{\"cpus\":\"2-3\"}}"
	if got := string(updateRequest("shy", `{"cpu":{"cpus":"2-3"}}`)); got != update {
		t.Errorf("%q", got)
	}
	if got := string(getRequest("shy")); got != "\n\x03shy" {
		t.Errorf("%q", got)
	}
	for data, want := range map[string]process{
		"\n\x1a\n\x03shy\x12\x03shy\x18\xeb\xa3\x04 \x02*\x06/run/x@\x01": {70123, 2},
		"\n\f\x12\x03shy\x18\x01 \x03H\x89\x01":                           {1, 3},
	} {
		if got, err := parseGetResponse([]byte(data)); got != want || err != nil {
			t.Errorf("%q: %v, %v", data, got, err)
		}
	}
	for _, bad := range []string{"", "\n", "\n\x05\x18", "\x08\x01", "\x0f", "\n\x02\x1a\x07"} {
		if got, err := parseGetResponse([]byte(bad)); err == nil || !errors.Is(err, kernel.ErrMalformed) || got != (process{}) {
			t.Errorf("%q: %v, %v", bad, got, err)
		}
	}
	for _, bad := range []string{"", "\x00\x00\x00\x00", "\x01\x00\x00\x00\x00", "\x00\x00\x00\x00\x02x"} {
		if _, err := unframe([]byte(bad)); err == nil {
			t.Errorf("%q is a message", bad)
		}
	}
}

// With much of the memory elsewhere the runtime would wait, so the nodes are refused.
func TestPagesFirst(t *testing.T) {
	f := newFake(t)
	ownertest.PagesFirst(t, f.root, f.owner(), setCPUs, setMems)
}

func TestNames(t *testing.T) {
	f := newFake(t)
	o := f.owner()
	for s, want := range map[journal.Setting]bool{
		{Cgroup: "container containerd/default/own", File: "cpuset.cpus"}:  true,
		{Cgroup: "container containerd/own", File: "cpuset.cpus"}:          false,
		{Cgroup: "container docker/own", File: "cpuset.cpus"}:              false,
		{Cgroup: "container containerd/default/own", File: "cgroup.procs"}: false,
		{Cgroup: "/default/own", File: "cpuset.cpus"}:                      false,
	} {
		if o.Names(s) != want {
			t.Errorf("%s: want %v", s, want)
		}
		if _, err := o.Read(s); !want && err == nil {
			t.Errorf("%s was read", s)
		}
	}
	s := journal.Setting{Cgroup: "container containerd/default/own", File: "cpuset.cpus"}
	if err := o.Write(journal.Permit{}, s, "1"); !errors.Is(err, journal.ErrRefused) || f.file("cpuset.cpus") != "" {
		t.Errorf("without a permit: %v", err)
	}
	if _, err := New(kernel.LiveToken{}, Config{}); !errors.Is(err, kernel.ErrNotSupported) {
		t.Errorf("without the kernel's token: %v", err)
	}
}

func FuzzGetResponse(f *testing.F) {
	f.Add([]byte("\n\x1a\n\x03shy\x12\x03shy\x18\xeb\xa3\x04 \x02*\x06/run/x@\x01"))
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := parseGetResponse(data)
		if err != nil && p != (process{}) || p.pid < 0 {
			t.Errorf("%v, %v", p, err)
		}
		_, _ = unframe(data)
	})
}
