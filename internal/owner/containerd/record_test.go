// SPDX-License-Identifier: Apache-2.0

package containerd

import (
	"os"
	"testing"

	"homenode/internal/action"
	"homenode/internal/journal"
	"homenode/internal/kernel/kerneltest"
	"homenode/internal/owner/ownertest"
)

// again makes the container's cgroup anew. The old one stays elsewhere, or the new one
// could get its number.
func (f *fakeTasks) again(cpus string) {
	old := f.t.TempDir() + "/old"
	if err := os.Rename(f.root.Path(top+at), old); err != nil {
		f.t.Fatal(err)
	}
	kerneltest.Write(f.t, f.root, kerneltest.Files{top + at + "/cpuset.cpus": cpus + "\n", top + at + "/cpuset.mems": "\n", top + at + "/cgroup.procs": "70\n"})
}

// Which answers end a record: that there is no such container, or that it has stopped.
func TestWhatEndsARecord(t *testing.T) {
	say := func(c code) func(f *fakeTasks) {
		return func(f *fakeTasks) { f.fail = func(string) (code, string) { return c, "so" } }
	}
	for name, c := range map[string]struct {
		do   func(f *fakeTasks)
		ends bool
	}{
		"not found":     {say(codeNotFound), true},
		"stopped":       {func(f *fakeTasks) { f.status = statusStopped }, true},
		"down":          {func(f *fakeTasks) { f.close() }, false},
		"unimplemented": {say(codeUnimplemented), false},
		"no state":      {func(f *fakeTasks) { f.status = 0 }, false},
		"unknown":       {say(codeUnknown), false},
		"internal":      {say(codeInternal), false},
		"cancelled":     {say(codeCancelled), false},
		"denied":        {say(codePermissionDenied), false},
		"precondition":  {say(codeFailedPrecondition), false},
		"no gRPC":       {say(codeNone), false},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t)
			j := open(t, t.TempDir())
			must(t, j, f.owner(), setCPUs)
			c.do(f)
			got, err := j.Restore(ctx, f.owner()) // after a restart: it has to be asked
			if ended := len(j.Outstanding()) == 0; ended != c.ends || len(got) != 1 || (got[0].Result == journal.Vanished) != c.ends {
				t.Errorf("ended %v: %v, %v", ended, got, err)
			}
		})
	}
}

// An update whose answer cannot be read may be done.
func TestUnsureUpdate(t *testing.T) {
	for _, c := range []code{codeInternal, codeCancelled, codeNone, codeUnavailable} {
		f := newFake(t)
		o, j := f.owner(), open(t, t.TempDir())
		f.fail = func(m string) (code, string) {
			if m == "Update" {
				return c, "so"
			}
			return codeOK, ""
		}
		if out := j.Wrap(o).Apply(ctx, setCPUs); out.Status != action.Failed || len(j.Outstanding()) != 1 {
			t.Errorf("%d: %s: %s", c, out.Status, out.Detail)
		}
	}
}

// late is a container that is made anew between the journal's read and its write.
type late struct {
	*Owner
	before func()
}

func (l late) Write(p journal.Permit, s journal.Setting, value string) error {
	l.before()
	return l.Owner.Write(p, s, value)
}

// A container that is made anew under its name in the meantime does not stay bound.
func TestMadeAnewMeanwhile(t *testing.T) {
	f := newFake(t)
	o, j := f.owner(), open(t, t.TempDir())
	l := late{o, func() { f.again("0-5") }}
	if out := j.Wrap(l).Apply(ctx, setCPUs); out.Status != action.Gone || f.file("cpuset.cpus") != "0-5" || len(j.Outstanding()) != 0 {
		t.Errorf("before: %s: %s; %q", out.Status, out.Detail, f.file("cpuset.cpus"))
	}
	f.after = func() { f.after = nil; f.again("2-3") }
	if out := j.Wrap(o).Apply(ctx, setCPUs); out.Status != action.Gone || f.file("cpuset.cpus") != "0-7" || len(j.Outstanding()) != 0 {
		t.Errorf("while asked: %s: %s; %q", out.Status, out.Detail, f.file("cpuset.cpus"))
	}
	if len(o.at)+len(o.seen) != 0 {
		t.Errorf("kept %v, %v", o.at, o.seen)
	}
}

// If the amount of memory elsewhere cannot be read, it may be large.
func TestUnknownElsewhere(t *testing.T) {
	f := newFake(t)
	j := open(t, t.TempDir())
	file := f.root.Path(top + at + "/memory.numa_stat")
	if err := os.Mkdir(file, 0o755); err != nil { // EISDIR
		t.Fatal(err)
	}
	if out := j.Wrap(f.owner()).Apply(ctx, setMems); out.Status != action.Failed || len(j.Outstanding()) != 0 {
		t.Errorf("%s: %s", out.Status, out.Detail)
	}
}

// A manager that does not answer in time is asked again, but not at once.
func TestSilenceIsWaitedForOnce(t *testing.T) {
	f := newFake(t)
	f.close()
	o := f.owner()
	ownertest.WaitsOnce(t, o.client.Client, f.listen, func() error {
		_, err := o.client.get("default", "own")
		return err
	})
}
