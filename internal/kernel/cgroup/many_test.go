// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"homenode/internal/kernel/kerneltest"
	"homenode/internal/kernel/unix"
)

func discovered(l Layout) (ids, problems []string) {
	found, err := l.DiscoverKnowing(nil, nil, func(err error) { problems = append(problems, err.Error()) })
	for _, c := range found {
		ids = append(ids, c.ID)
	}
	if err != nil {
		problems = append(problems, err.Error())
	}
	return ids, problems
}

// More cgroups than are looked at are left out, with a word, and not the ones near the
// root: a user's cgroups cannot hide the services of others.
func TestTooManyCgroups(t *testing.T) {
	kerneltest.InMemory(t)
	l := v2Tree(t)
	dir := func(id string) string { return l.Path(l.Cpuset, id, "") }
	mkdir := func(id string) {
		if err := os.MkdirAll(dir(id), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for i := range maxChildren + 10 {
		mkdir(fmt.Sprintf("/a-user/mine/%d", i))
	}
	mkdir("/service")
	for id, pids := range map[string]string{"/service": "10\n", "/a-user": "", "/a-user/mine": ""} {
		if err := os.WriteFile(dir(id)+"/cgroup.procs", []byte(pids), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ids, problems := discovered(l)
	if !slices.Contains(ids, "/service") || len(problems) != 1 || !strings.Contains(problems[0], fmt.Sprintf("more than %d cgroups", maxChildren)) {
		t.Errorf("%v, %q", ids, problems)
	}
	var buf unix.Buffer
	if pids, err := l.PIDs(nil, "/a-user", &buf); !errors.Is(err, unix.ErrTooLarge) {
		t.Errorf("%v, %v: a part would be reported as all", pids, err)
	}
}

// A cgroup whose path is too long for the kernel's files is left out, with a word.
func TestTooLongCgroup(t *testing.T) {
	l := v2Tree(t)
	id := ""
	for len(l.Path(l.Cpuset, id, "")) <= maxPath {
		id += "/" + strings.Repeat("x", min(250, 4090-len(l.Path(l.Cpuset, id, ""))-1))
	}
	if err := os.MkdirAll(l.Path(l.Cpuset, id, ""), 0o755); err != nil {
		t.Fatal(err)
	}
	ids, problems := discovered(l)
	if slices.Contains(ids, id) || len(problems) != 1 || !strings.Contains(problems[0], "its path has") {
		t.Errorf("%d found, %q", len(ids), problems)
	}
}
