// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"homenode/internal/action"
	"homenode/internal/journal"
	"homenode/internal/kernel"
	"homenode/internal/owner/cgroup"
)

// last is the end of a chain. It has every method that an owner may have.
type last struct{ ended []string }

var (
	theLast  = errors.New("the last one was asked")
	theirs   = journal.Named(journal.OfContainer, "docker/1a", "cpuset.cpus")
	ofBefore = journal.Entry{Setting: theirs, ID: 7, Original: "0-3", Ours: []string{"2"}}
)

func (l *last) Plan(context.Context, action.Step) ([]journal.Change, error) { return nil, theLast }
func (l *last) Read(journal.Setting) (journal.Current, error)               { return journal.Current{}, theLast }
func (l *last) Same(_ journal.Setting, current, _ string) bool              { return current == "last" }
func (l *last) Write(journal.Permit, journal.Setting, string) error         { return theLast }
func (l *last) Equivalent(journal.Setting, string) (string, error)          { return "last", nil }
func (l *last) Move(context.Context, journal.Permit, action.Step) action.Outcome {
	return action.Outcome{Detail: "last"}
}
func (l *last) Overrules(journal.Setting, string) string { return "last" }
func (l *last) Remembered() ([]journal.Entry, error)     { return []journal.Entry{ofBefore}, theLast }
func (l *last) Ended(s journal.Setting) error            { l.ended = append(l.ended, s.String()); return theLast }
func (l *last) Clock(journal.Setting) uint64             { return 77 }
func (l *last) Original(journal.Setting, string) string  { return "last" }
func (l *last) Inherited(journal.Family) ([]journal.Inherited, error) {
	return []journal.Inherited{{ID: 77}}, theLast
}

// Whatever the journal may ask of an owner reaches the end of the chain that New
// builds.
func TestNoLinkKeepsAnythingBack(t *testing.T) {
	end := &last{}
	chain, err := withThreads(nil, end, nil)
	if err != nil {
		t.Skipf("no owner of threads here: %v", err)
	}
	_, planned := chain.Plan(t.Context(), action.Step{Kind: action.SetCPUs, Workload: "/a"})
	_, read := chain.Read(theirs)
	entries, remembered := chain.Remembered()
	for what, err := range map[string]error{
		"Plan": planned, "Read": read, "Write": chain.Write(journal.Permit{}, theirs, "1"), "Remembered": remembered, "Ended": chain.Ended(theirs),
	} {
		if !errors.Is(err, theLast) {
			t.Errorf("%s: %v", what, err)
		}
	}
	equivalent, _ := chain.Equivalent(theirs, "")
	move := chain.Move(t.Context(), journal.Permit{}, action.Step{Kind: action.MovePages, Workload: "/a"})
	for what, got := range map[string]string{
		"Equivalent": equivalent, "Overrules": chain.Overrules(theirs, "1"), "Original": chain.Original(theirs, "1"), "Move": move.Detail,
	} {
		if got != "last" {
			t.Errorf("%s: %q", what, got)
		}
	}
	inherited, _ := chain.Inherited(journal.Family{Workload: "pid:0"})
	if len(inherited) != 1 || chain.Clock(theirs) != 77 || !chain.Same(theirs, "last", "") || len(end.ended) != 1 || !reflect.DeepEqual(entries, []journal.Entry{ofBefore}) {
		t.Errorf("%v, %d, %v, %v", inherited, chain.Clock(theirs), end.ended, entries)
	}
}

// A workload that is left alone is left alone for classes too, unless direct_owners
// names its owner.
func TestClassesOfThoseLeftAlone(t *testing.T) {
	for workload, owner := range map[string]string{
		"/kubepods.slice/kubepods-pod1.slice/c": "kubelet", "/system.slice/crio-1a.scope": "crio",
		"/machine.slice/libpod-1a.scope": "podman", "/machine.slice/machine-qemu-1.scope": "libvirt",
	} {
		step := action.Step{Kind: action.SetClass, Workload: workload, Class: &action.Class{Cache: 0.5}}
		for _, direct := range [][]string{nil, {owner}} {
			chain, err := withThreads(direct, &last{}, nil)
			if err != nil {
				t.Skipf("no owner of threads here: %v", err)
			}
			_, err = chain.Plan(t.Context(), step)
			if direct == nil && errors.Is(err, kernel.ErrNotSupported) {
				t.Skipf("no cpuset here: %v", err)
			}
			if alone := errors.Is(err, journal.ErrRefused) && strings.Contains(err.Error(), "owned by "+owner); alone != (direct == nil) {
				t.Errorf("%s with %v: %v", workload, direct, err)
			}
		}
	}
}

// After a reboot, the original settings of Docker's containers are restored by
// the owner that 'homenode restore' and the agent use.
func TestDockerAfterRebootThroughTheChain(t *testing.T) {
	const id = "1a2b3c4d5e6f708192a3b4c5d6e7f8091a2b3c4d5e6f708192a3b4c5d6e7f809"
	dir, err := os.MkdirTemp("", "docker") // t.TempDir is too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	memory, socket := filepath.Join(dir, "docker.json"), filepath.Join(dir, "s")
	owner, err := withManagers(cgroup.Config{}, Runtimes{DockerSocket: socket, DockerMemory: memory}, &cgroup.Applier{})
	if err != nil {
		t.Skipf("no cgroups here: %v", err)
	}
	j, err := journal.Open(filepath.Join(dir, "journal"))
	if err != nil {
		t.Skipf("no journal on this host: %v", err)
	}
	defer j.Close()
	left := fmt.Sprintf(`[{"boot":"another","container":%q,"file":"cpuset.cpus","original":"0-5","ours":["2-3"]}]`, id)
	if err := os.WriteFile(memory, []byte(left), 0o600); err != nil {
		t.Fatal(err)
	}
	cpus := "2-3"
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/version":
			fmt.Fprint(w, `{"Version":"20.10.24","ApiVersion":"1.41","MinAPIVersion":"1.12"}`)
		case r.Method == http.MethodPost:
			cpus = "0-5"
			fmt.Fprint(w, `{}`)
		default:
			fmt.Fprintf(w, `{"Id":%q,"State":{"Pid":0},"HostConfig":{"CpusetCpus":%q}}`, id, cpus)
		}
	})}
	go func() { _ = server.Serve(l) }()
	defer server.Close()
	got, err := j.Restore(t.Context(), owner)
	if err != nil || len(got) != 1 || got[0].Result != journal.PutBack || cpus != "0-5" {
		t.Errorf("%v, %v: Docker has %q", got, err, cpus)
	}
	if _, err := os.Stat(memory); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it still remembers: %v", err)
	}
}
