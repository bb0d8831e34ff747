// SPDX-License-Identifier: Apache-2.0

package docker

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"slices"
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
	memory := filepath.Join(t.TempDir(), "lib", "docker.json")
	o, j := f.owner(memory), open(t, t.TempDir())
	must(t, j, o, setCPUs, move, setMems, setCPUs)
	var did []string
	for _, a := range f.asked {
		if !strings.HasPrefix(a, "GET") {
			did = append(did, strings.Replace(a, id, "ID", 1))
		}
	}
	const want = "POST /v1.41/containers/ID/update MOVE to 1 POST /v1.41/containers/ID/update"
	if got := strings.Join(did, " "); got != want || f.file("cpuset.cpus") != "2-3" || f.file("cpuset.mems") != "1" {
		t.Errorf("did %s; the cgroup has %s, %s", got, f.file("cpuset.cpus"), f.file("cpuset.mems"))
	}
	if !j.Ours(at, "cpuset.cpus", "2-3") || j.Ours(at, "cpuset.cpus", "2") {
		t.Error("the journal does not know the owner of the cgroup's value")
	}
	if data, err := os.ReadFile(memory); err != nil || !strings.Contains(string(data), `"cpuset.mems","original":"","ours":["1"]`) {
		t.Errorf("remembered %s, %v", data, err)
	}
	got, err := j.Restore(ctx, o)
	if err != nil || len(got) != 2 || got[0].Result != journal.Equivalent || f.cpus != "0-7" || f.mems != "0-1" || f.file("cpuset.cpus") != "0-7" {
		t.Errorf("%v, %v; Docker keeps %q, %q", got, err, f.cpus, f.mems)
	}
	if _, err := os.Stat(memory); !errors.Is(err, os.ErrNotExist) || len(j.Outstanding()) != 0 {
		t.Errorf("there is something left: %v, %v", err, j.Outstanding())
	}
}

// A container that had a set of its own gets exactly that back.
func TestOriginalSet(t *testing.T) {
	f := newFake(t)
	f.cpus = "0-5"
	o, j := f.owner(""), open(t, t.TempDir())
	must(t, j, o, setCPUs)
	got, err := j.Restore(ctx, o)
	if err != nil || got[0].Result != journal.PutBack || f.cpus != "0-5" {
		t.Errorf("%v, %v: %s", got, err, f.cpus)
	}
}

// Drift in Docker's records, and beneath Docker in the cgroup.
func TestDrift(t *testing.T) {
	f := newFake(t)
	o, j := f.owner(""), open(t, t.TempDir())
	must(t, j, o, setCPUs, setMems)
	f.cpus = "4-5" // docker update --cpuset-cpus
	kerneltest.Write(t, f.root, kerneltest.Files{top + at + "/cpuset.mems": "0\n"})
	again := setCPUs
	again.CPUs = set.FromCPUs(2)
	if out := j.Wrap(o).Apply(ctx, again); out.Status != action.Drifted || !strings.Contains(out.Detail, `it is "4-5"`) {
		t.Errorf("%s: %s", out.Status, out.Detail)
	}
	if out := j.Wrap(o).Apply(ctx, setMems); out.Status != action.Drifted || !strings.Contains(out.Detail, "beneath Docker") {
		t.Errorf("%s: %s", out.Status, out.Detail)
	}
	got, err := j.Restore(ctx, o)
	if err != nil || got[1].Result != journal.Left || f.cpus != "4-5" {
		t.Errorf("%v, %v", got, err)
	}
}

// A restart of the container makes its cgroup anew, with the set that Docker stores: that
// is still ours to put back.
func TestRestartedContainer(t *testing.T) {
	f := newFake(t)
	o, j := f.owner(""), open(t, t.TempDir())
	must(t, j, o, setCPUs)
	f.pid = 0
	if out := j.Wrap(o).Apply(ctx, setMems); out.Status != action.Gone || !strings.Contains(out.Detail, "does not run") {
		t.Errorf("%s: %s", out.Status, out.Detail)
	}
	got, err := j.Restore(ctx, o)
	if err != nil || len(got) != 1 || got[0].Result != journal.Equivalent || f.cpus != "0-7" {
		t.Errorf("%v, %v: %s", got, err, f.cpus)
	}
}

func TestRefusals(t *testing.T) {
	inner := setCPUs
	inner.Workload = at + "/init.scope"
	fail := func(status int, text string) func(http.ResponseWriter, *http.Request) bool {
		return func(w http.ResponseWriter, r *http.Request) bool {
			if r.Method == http.MethodPost {
				w.WriteHeader(status)
				_ = json.NewEncoder(w).Encode(map[string]string{"message": text})
			}
			return r.Method == http.MethodPost
		}
	}
	for _, c := range []struct {
		name   string
		do     func(f *fakeDocker)
		step   action.Step
		status action.Status
		text   string
	}{
		{"gone", func(f *fakeDocker) { f.gone = true }, setCPUs, action.Gone, "No such container"},
		{"inner", func(*fakeDocker) {}, inner, action.Refused, "within or around"},
		{"down", func(f *fakeDocker) { f.server.Close() }, setCPUs, action.Failed, "start dockerd, or set docker_socket"},
		{"too old", func(f *fakeDocker) { f.version = `{"Version":"1.9","ApiVersion":"1.21"}` }, setCPUs, action.Refused, "update Docker"},
		{"too new", func(f *fakeDocker) { f.version = `{"ApiVersion":"1.90","MinAPIVersion":"1.60"}` }, setCPUs, action.Refused, "update homenode"},
		{"no Docker", func(f *fakeDocker) { f.version = `{}` }, setCPUs, action.Failed, "want 1.N"},
		{"no JSON", func(f *fakeDocker) { f.version = `<html>` }, setCPUs, action.Failed, "read Docker's answer"},
		{"conflict", func(f *fakeDocker) { f.answer = fail(409, "marked for removal") }, setCPUs, action.Refused, "marked for removal"},
		{"runc", func(f *fakeDocker) { f.answer = fail(500, "OCI runtime\x1b[2Jerror") }, setCPUs, action.Failed, `runtime\x1b`},
		{"authorization", func(f *fakeDocker) { f.answer = fail(403, "denied by plugin") }, setCPUs, action.Refused, "denied by plugin"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFake(t)
			o, j := f.owner(""), open(t, t.TempDir())
			c.do(f)
			out := j.Wrap(o).Apply(ctx, c.step)
			if out.Status != c.status || !strings.Contains(out.Detail, c.text) {
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
	c := newClient("/run/docker.sock")
	c.HTTP.Transport = ownertest.Denied{}
	_, err := c.inspect(id)
	if !errors.Is(err, kernel.ErrNotPermitted) || !strings.Contains(err.Error(), "group") {
		t.Error(err)
	}
}

// A request without an answer may be done later: it stays on record, and is put back as
// soon as Docker answers.
func TestNoAnswer(t *testing.T) {
	f := newFake(t)
	o, j := f.owner(""), open(t, t.TempDir())
	must(t, j, o, setMems)
	f.answer = func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodPost {
			return false
		}
		f.cpus = "2-3" // done, and then dockerd ends
		panic(http.ErrAbortHandler)
	}
	out := j.Wrap(o).Apply(ctx, setCPUs)
	if out.Status != action.Failed || len(j.Outstanding()) != 2 {
		t.Errorf("%s: %s; %v", out.Status, out.Detail, j.Outstanding())
	}
	f.server.Close()
	got, err := j.Restore(ctx, o)
	if err != nil || len(got) != 2 || got[0].Result != journal.Kept || len(j.Outstanding()) != 2 {
		t.Errorf("down: %v, %v", got, err)
	}
	f.answer = nil
	f.listen()
	if got, err = j.Restore(ctx, o); err != nil || f.cpus != "0-7" || f.mems != "0-1" || len(j.Outstanding()) != 0 {
		t.Errorf("up again: %v, %v", got, err)
	}
}

// The machine crashed: the journal is gone, and Docker starts its containers with the
// stored sets. What the memory file lists is put back, and what another process changed
// since is left. Foresee changes nothing.
func TestAfterReboot(t *testing.T) {
	f := newFake(t)
	memory := filepath.Join(t.TempDir(), "docker.json")
	must(t, open(t, t.TempDir()), f.owner(memory), setCPUs, setMems)
	if got, err := open(t, t.TempDir()).Restore(ctx, f.owner(memory)); err != nil || len(got) != 0 {
		t.Errorf("another homenode's of this boot: %v, %v", got, err)
	}
	kerneltest.Write(t, f.root, kerneltest.Files{"/proc/sys/kernel/random/boot_id": "7a000000-0000-4000-8000-000000000002\n"})
	f.mems = "0"
	kept, _ := os.ReadFile(memory)
	foreseen, err := journal.Foresee(t.TempDir(), "7a000000-0000-4000-8000-000000000002", f.owner(memory))
	if now, _ := os.ReadFile(memory); err != nil || len(foreseen) != 2 || string(now) != string(kept) || f.mems != "0" {
		t.Errorf("foreseen: %v, %v; %s", foreseen, err, now)
	}
	j := open(t, t.TempDir())
	got, err := j.Restore(ctx, f.owner(memory))
	if err != nil || len(got) != 2 || got[0].Result != journal.Left || got[1].Result != journal.Equivalent || f.cpus != "0-7" || f.mems != "0" {
		t.Errorf("%v, %v: %q %q", got, err, f.cpus, f.mems)
	}
	if _, err := os.Stat(memory); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it still remembers: %v", err)
	}
	for _, bad := range []string{"{", `[{"container":"x"}]`, `[{"container":"x","file":"y","ours":["1"]}]`} {
		if err := os.WriteFile(memory, []byte(bad), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := j.Restore(ctx, f.owner(memory)); err == nil || !strings.Contains(err.Error(), "docker update") {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

// A crash before and after every call, while binding and while restoring.
func TestEveryCrash(t *testing.T) {
	points := 0
	for _, reboot := range []bool{false, true} {
		for stop := 1; ; stop++ {
			f := newFake(t)
			f.cpus = "0-5"
			dir, memory := t.TempDir(), filepath.Join(t.TempDir(), "docker.json")
			o, j := f.owner(memory), open(t, dir)
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
			if reboot {
				dir = t.TempDir()
				kerneltest.Write(t, f.root, kerneltest.Files{"/proc/sys/kernel/random/boot_id": "7a000000-0000-4000-8000-000000000002\n"})
			}
			j = open(t, dir)
			got, err := j.Restore(ctx, f.owner(memory))
			if err != nil || f.cpus != "0-5" || !slices.Contains([]string{"", "0-1"}, f.mems) || len(j.Outstanding()) != 0 {
				t.Errorf("stopped at %d, reboot %v: Docker keeps %q, %q: %v, %v", stop, reboot, f.cpus, f.mems, got, err)
			}
		}
	}
	if points < 40 {
		t.Errorf("%d points: too few to mean anything", points)
	}
	t.Logf("%d crash points", points)
}

// With much of the memory elsewhere the runtime would wait, so the nodes are refused.
func TestPagesFirst(t *testing.T) {
	f := newFake(t)
	ownertest.PagesFirst(t, f.root, f.owner(""), setCPUs, setMems)
}

func TestNames(t *testing.T) {
	f := newFake(t)
	o := f.owner("")
	for s, want := range map[journal.Setting]bool{
		{Cgroup: "container docker/1a", File: "cpuset.cpus"}:             true,
		{Cgroup: "container containerd/default/1a", File: "cpuset.cpus"}: false,
		{Cgroup: "container docker/1a", File: "cgroup.subtree_control"}:  false,
		{Cgroup: "/system.slice/docker-1a.scope", File: "cpuset.cpus"}:   false,
		{Cgroup: "container docker/", File: "cpuset.mems"}:               false,
		{Cgroup: "unit docker/1a", File: "cpuset.mems"}:                  false,
	} {
		if o.Names(s) != want {
			t.Errorf("%s: want %v", s, want)
		}
		if _, err := o.Read(s); !want && err == nil {
			t.Errorf("%s was read", s)
		}
	}
	if err := o.Write(journal.Permit{}, journal.Setting{Cgroup: "container docker/" + id, File: "cpuset.cpus"}, "1"); !errors.Is(err, journal.ErrRefused) || f.cpus != "" {
		t.Errorf("without a permit: %v", err)
	}
	if _, err := New(kernel.LiveToken{}, Config{}); !errors.Is(err, kernel.ErrNotSupported) {
		t.Errorf("without the kernel's token: %v", err)
	}
}

func TestCommonAPI(t *testing.T) {
	for _, c := range [][3]string{
		{"1.41", "1.12", "/v1.41"}, {"1.60", "1.44", "/v1.52"}, {"1.24", "", "/v1.24"},
		{"1.23", "1.12", ""}, {"1.99", "1.53", ""}, {"2.0", "1.0", ""}, {"1.x", "", ""}, {"", "", ""},
	} {
		if got, err := commonAPI(c[0], c[1]); got != c[2] || (err == nil) != (c[2] != "") {
			t.Errorf("%v: %q, %v", c, got, err)
		}
	}
}

func FuzzMemory(f *testing.F) {
	f.Add([]byte(`[{"boot":"a","container":"1a","file":"cpuset.cpus","original":"","ours":["2-3"]}]`))
	f.Add([]byte(`[{}]`))
	f.Fuzz(func(t *testing.T, data []byte) {
		all, err := parseMemory(data)
		if err != nil && all != nil {
			t.Errorf("an error and %v", all)
		}
	})
}

func FuzzRefused(f *testing.F) {
	f.Add(500, []byte(`{"message":"x"}`))
	f.Fuzz(func(t *testing.T, status int, data []byte) {
		if err := refused("GET /x", status, data); strings.ContainsAny(err.Error(), "\x1b\n\x00") {
			t.Errorf("%q", err)
		}
	})
}
