// SPDX-License-Identifier: Apache-2.0

package docker

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"homenode/internal/action"
	"homenode/internal/journal"
	"homenode/internal/kernel/kerneltest"
	"homenode/internal/owner/ownertest"
)

const nextBoot = "7a000000-0000-4000-8000-000000000002\n"

func (f *fakeDocker) reboot() {
	kerneltest.Write(f.t, f.root, kerneltest.Files{"/proc/sys/kernel/random/boot_id": nextBoot})
}

// A value that another process sets after us is the original when we bind again, and a
// reboot does not put anything back over it.
func TestOthersSetIsNotForgotten(t *testing.T) {
	f := newFake(t)
	memory := filepath.Join(t.TempDir(), "docker.json")
	o, j := f.owner(memory), open(t, t.TempDir())
	must(t, j, o, setCPUs)
	f.cpus = "0-1" // docker update
	for _, want := range []journal.Result{journal.Left, journal.PutBack} {
		got, err := j.Restore(ctx, o)
		if err != nil || len(got) != 1 || got[0].Result != want || f.cpus != "0-1" {
			t.Fatalf("want %s: %v, %v: %s", want, got, err, f.cpus)
		}
		if _, err := os.Stat(memory); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: it still remembers: %v", want, err)
		}
		if want == journal.Left {
			must(t, j, o, setCPUs)
		}
	}
	f.reboot()
	if got, err := open(t, t.TempDir()).Restore(ctx, f.owner(memory)); err != nil || len(got) != 0 || f.cpus != "0-1" {
		t.Errorf("%v, %v: %s", got, err, f.cpus)
	}
}

// A memory file that is older than what Docker has now, such as that of a homenode that
// lost its journal, starts again with Docker's value.
func TestStaleMemory(t *testing.T) {
	f := newFake(t)
	memory := filepath.Join(t.TempDir(), "docker.json")
	o := f.owner(memory)
	must(t, open(t, t.TempDir()), o, setCPUs)
	f.cpus = "0-1"
	must(t, open(t, t.TempDir()), o, setCPUs)
	if all, err := o.load(); err != nil || len(all) != 1 || all[0].Original != "0-1" {
		t.Errorf("%v, %v", all, err)
	}
}

// What was refused is not remembered.
func TestRefusedIsNotRemembered(t *testing.T) {
	f := newFake(t)
	memory := filepath.Join(t.TempDir(), "docker.json")
	o, j := f.owner(memory), open(t, t.TempDir())
	f.answer = func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPost {
			w.WriteHeader(http.StatusConflict)
		}
		return r.Method == http.MethodPost
	}
	if out := j.Wrap(o).Apply(ctx, setCPUs); out.Status != action.Refused {
		t.Errorf("%s: %s", out.Status, out.Detail)
	}
	if _, err := os.Stat(memory); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it remembers: %v", err)
	}
}

// Which answers end a record: only Docker's own answer that there is no such container.
func TestWhatEndsARecord(t *testing.T) {
	version := func(f *fakeDocker, text string) { f.version = text }
	get := func(status int, text string) func(f *fakeDocker) {
		return func(f *fakeDocker) {
			f.answer = func(w http.ResponseWriter, r *http.Request) bool {
				if r.URL.Path == "/version" {
					return false
				}
				w.WriteHeader(status)
				fmt.Fprint(w, text)
				return true
			}
		}
	}
	for name, c := range map[string]struct {
		do   func(f *fakeDocker)
		ends bool
	}{
		"gone":             {func(f *fakeDocker) { f.gone = true }, true},
		"down":             {func(f *fakeDocker) { f.server.Close() }, false},
		"too new":          {func(f *fakeDocker) { version(f, `{"ApiVersion":"1.90","MinAPIVersion":"1.60"}`) }, false},
		"too old":          {func(f *fakeDocker) { version(f, `{"ApiVersion":"1.21"}`) }, false},
		"no version":       {func(f *fakeDocker) { version(f, `{}`) }, false},
		"empty":            {get(200, ``), false},
		"no object":        {get(200, `null`), false},
		"no id":            {get(200, `{}`), false},
		"another id":       {get(200, `{"Id":"9f86d081"}`), false},
		"proxy's 404":      {get(404, `404 page not found`), false},
		"podman's 404":     {get(404, `{"message":"no container with name or ID \"x\" found: no such container"}`), false},
		"denied":           {get(403, `{"message":"denied"}`), false},
		"unauthorized":     {get(401, ``), false},
		"conflict":         {get(409, ``), false},
		"version unknown":  {get(400, `{"message":"client version 1.41 is too old. Minimum supported API version is 1.44"}`), false},
		"no gateway":       {get(502, `<html>`), false},
		"gateway's silent": {get(504, ``), false},
		"trouble":          {get(500, `{"message":"runc"}`), false},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t)
			o, j := f.owner(filepath.Join(t.TempDir(), "docker.json")), open(t, t.TempDir())
			must(t, j, o, setCPUs)
			o.client.api = ""
			c.do(f)
			got, err := j.Restore(ctx, o)
			if ended := len(j.Outstanding()) == 0; ended != c.ends || len(got) != 1 || (got[0].Result == journal.Vanished) != c.ends {
				t.Errorf("ended %v: %v, %v", ended, got, err)
			}
			if all, err := o.load(); err != nil || (len(all) == 0) != c.ends {
				t.Errorf("remembers %v, %v", all, err)
			}
		})
	}
}

// An update that a proxy gave up, or that was sent twice, may be done.
func TestUnsureUpdate(t *testing.T) {
	f := newFake(t)
	o, j := f.owner(""), open(t, t.TempDir())
	posts := 0
	f.answer = func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodPost {
			return false
		}
		if posts++; posts == 1 {
			f.cpus = "2-3"
			panic(http.ErrAbortHandler)
		}
		w.WriteHeader(http.StatusInternalServerError)
		return true
	}
	if out := j.Wrap(o).Apply(ctx, setCPUs); out.Status != action.Failed || len(j.Outstanding()) != 1 {
		t.Errorf("%s: %s; %v", out.Status, out.Detail, j.Outstanding())
	}
}

// A daemon that was replaced by one with another version is asked again at once.
func TestExchangedDaemon(t *testing.T) {
	f := newFake(t)
	o := f.owner("")
	o.client.api = "/v1.24"
	f.answer = func(w http.ResponseWriter, r *http.Request) bool {
		if strings.HasPrefix(r.URL.Path, "/v1.24/") {
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprint(w, `{"message":"client version 1.24 is too old. Minimum supported API version is 1.41"}`)
			return true
		}
		return false
	}
	if d, err := o.client.inspect(id); err != nil || d.ID != id {
		t.Errorf("%+v, %v", d, err)
	}
}

// A manager that does not answer in time is asked again, but not at once.
func TestSilenceIsWaitedForOnce(t *testing.T) {
	f := newFake(t)
	f.server.Close()
	o := f.owner("")
	ownertest.WaitsOnce(t, o.client.Client, f.listen, func() error {
		_, err := o.client.inspect(id)
		return err
	})
}
