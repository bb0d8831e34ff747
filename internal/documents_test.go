// SPDX-License-Identifier: Apache-2.0

package internal_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// exception is a command of the documents that does not run as it stands, with exit code 0.
type exception struct {
	command string // its beginning; the longest one counts
	why     string // it is not run, for this reason
	with    string // appended: a shorter time, a folder of its own. The last flag counts
	codes   []int  // the exit codes that it may have; nil: 0
}

const (
	ownFolder  = ` --state "$PWD/own"` // not the one of an agent that this machine may run
	ownSocket  = ` --socket "$PWD/own.sock"`
	noSuch     = "it names a process, workload, device or node of the reader's machine"
	minutes    = "it takes minutes, and a CPU's or a NUMA machine's whole attention"
	simMinutes = "it takes minutes of CPU time; internal/sim's tests run shorter ones"
	guest      = "it boots the lab: internal/lab's tests boot every shape"
	debian     = "it changes the system: lab.TestLabDebianFirstDay runs it in a Debian guest"
	packaged   = "it changes the system: lab.TestLabDebianPackage and scripts/test-packages.sh install, upgrade, remove and purge"
	makes      = "it builds from the source tree, with packages that it installs; CI builds so"
	acts       = "it changes cgroups until it ends: the lab's tests do that in a guest"
	endless    = "it runs until it is ended: agent's tests end it"
	ownProgram = "it runs a program of the reader's"
	published  = "it reads results of the command before it, which takes minutes"
	registry   = "it installs packages: scripts/model.sh test runs it"
)

// exceptions are all commands of the documents that are not run as they are, each with what is
// different. A command that is in no document any more is an error.
var exceptions = []exception{
	// Without an agent, these say so.
	{command: "homenode status", with: ownFolder, codes: []int{2}},
	{command: "homenode status --state", why: debian},
	{command: "homenode why", with: ownFolder, codes: []int{2}},
	{command: "homenode restore", with: ownFolder, codes: []int{4}},
	{command: "homenode reload", with: ownSocket, codes: []int{2}},
	{command: "homenode exclude", with: ownSocket, codes: []int{2}},

	// Shorter, or in a folder of its own.
	{command: "homenode doctor", with: " --for 100ms", codes: []int{0, 3}}, // 3: this machine does not show everything
	{command: "homenode doctor --for 30s --fail-on serious", why: "its exit code depends on the machine; 'homenode doctor' runs"},
	{command: "homenode agent --config agent.yaml --dry-run", with: ownFolder + " --rounds 1"},
	{command: "homenode record --windows", with: " --for 300ms --period 100ms --force"},
	{command: "homenode classes day.jsonl", why: "it reads constants that the command after it makes, which runs"},
	{command: "homenode classes --workload", with: " --workload /trial/p"}, // that is its name in the recordings here
	{command: "homenode record --root DIR", why: "DIR is a recorded tree of the reader's"},
	{command: "homenode topo --root DIR", why: "DIR is a recorded tree of the reader's"},
	{command: "homenode placements --vcpus 16", with: " --shape opteron"}, // this machine may have fewer CPUs
	{command: "homenode placements --vcpus 16 --profile", why: "it reads what 'homenode bench' left on the reader's machine"},
	{command: "homenode placements --vcpus 24", why: "it reads a table of bandwidths, or what 'homenode bench' left, of the reader's machine"},
	{command: "homenode topo --profile", why: "it reads what 'homenode bench' left on the reader's machine"},
	{command: "homenode record --windows day.jsonl --for 10m && homenode top", why: "a screen needs a terminal: tui's tests draw it"},
	{command: "homenode record --windows day.jsonl --for 10m --penalty && ", why: "it joins two commands that run by themselves, and its time is the first one's"},
	{command: "homenode bench", why: minutes + ": bench's tests measure parts"},
	{command: "homenode bench show", why: "it reads what 'homenode bench' left on the reader's machine"},

	// On the reader's machine.
	{command: "homenode agent --config agent.yaml", why: acts},
	{command: "homenode agent --observe", why: endless},
	{command: "homenode agent --check", with: " --config agent.yaml"},
	{command: "homenode agent --config /etc", why: debian},
	{command: "homenode stat --workload", why: noSuch},
	{command: "homenode maps 12", why: noSuch},
	{command: "homenode top", why: "a screen needs a terminal: tui's tests draw it"},
	{command: "homenode migrate", why: noSuch + "; the lab's tests move"},
	{command: "homenode pin", why: noSuch + "; the lab's tests pin"},
	{command: "homenode topo --hwloc - | lstopo", why: "it needs hwloc; report/topology's tests hold the XML to hwloc's own"},
	{command: "homenode run --nodes 0 -- ./solver", why: ownProgram},
	{command: "homenode run --nodes 0-1", why: ownProgram},
	{command: "homenode run --nodes 1", why: ownProgram},
	{command: "homenode run --nodes 0 --policy local -- COMMAND", why: ownProgram},
	{command: "homenode run --policy local", why: ownProgram},
	{command: "homenode run --shm", why: "it leaves shared memory behind: TestRunSegment places some"},
	{command: "homenode repeat", why: ownProgram},
	{command: "homenode profile --vcpus 16", why: ownProgram},
	{command: "homenode profile --vcpus 8 --workload", why: noSuch + "; lab.TestLabProfileWorkload profiles one"},
	{command: "homenode experiment", why: noSuch + "; lab.TestLabExperiment tries one"},
	{command: "homenode place", why: noSuch + "; lab.TestLabPlace places one"},
	{command: "homenode pack containers.yaml", why: "it reads the reader's containers; cmd/homenode's tests pack some"},
	{command: "homenode enrol", why: "it needs a hub and its token: agent/outbox's tests enrol"},
	{command: "homenode-hub serve", why: endless},
	{command: "homenode-hub dev", why: endless},
	{command: "homenode-hub enrol", why: "it needs a hub's authority: cmd/homenode-hub's tests enrol"},
	{command: "homenode-hub revoke", why: "it needs a hub's authority: cmd/homenode-hub's tests revoke"},
	{command: "homenode-hub query", why: "it asks the reader's hub or store: cmd/homenode-hub's tests ask both"},
	{command: "homenode deploy", why: "it needs a running service: the lab's tests deploy one"},
	{command: "homenode-hub deploy", why: "it needs a hub's store: cmd/homenode-hub's tests roll a service out"},
	{command: "homenode-hub sensitivity", why: "it needs a trained model: cmd/homenode-hub's tests have a small one"},
	{command: "homenode-hub orders", why: "it reads the reader's orders: cmd/homenode-hub's tests show some"},
	{command: "curl --unix-socket", why: "an agent has to run: agent/serve's tests ask the socket"},
	{command: "promtool tsdb", why: "it needs Prometheus: scripts/try-metrics.sh runs one"},

	// As root, on a whole system.
	{command: "dpkg -i", why: debian},
	{command: "rpm ", why: packaged},
	{command: "apt-get ", why: packaged},
	{command: "systemctl ", why: packaged},
	{command: "cp /usr/share/doc", why: "it changes the kernel's settings"},
	{command: "sysctl ", why: "it changes the kernel's settings"},
	{command: "install ", why: "it changes the system"},
	{command: "homenode completion bash > /etc", why: "it changes the system; clitest runs the completion"},
	{command: "make ", why: makes},

	// The lab and the simulator.
	{command: "/usr/share/homenode-lab/lab/build.sh", why: makes},
	{command: "homenode-lab demo", why: guest},
	{command: "homenode-lab run", why: guest},
	{command: "homenode-lab shell", why: guest},
	{command: "build/homenode-lab shell", why: guest},
	{command: "scripts/model.sh", why: registry},
	{command: "homenode-lab sim compare", why: simMinutes},
	{command: "homenode-lab sim compare two-services"},
	{command: "homenode-lab sim compare sim/scenarios/two-services.yaml"},
	{command: "homenode-lab sim report", why: simMinutes},
	{command: "homenode-lab sim report two-services"},
	{command: "homenode-lab sim report result.json"},
	{command: "homenode-lab sim fleet", why: simMinutes},
	{command: "homenode-lab sim arena --experiment", why: simMinutes},
	{command: "homenode-lab sim arena all.json", why: published},
	{command: "homenode-lab sim papers all.json", why: published},
	{command: "homenode-lab sim placements", why: simMinutes},
	{command: "homenode-lab sim pack", why: published},
	{command: "homenode-lab sim trials", why: simMinutes},
}

// exceptionOf is the exception for a command, and its index; -1: it runs as it is.
func exceptionOf(command string) (best exception, at int) {
	at = -1
	for i, e := range exceptions {
		if strings.HasPrefix(command, e.command) && (at < 0 || len(e.command) > len(best.command)) {
			best, at = e, i
		}
	}
	return best, at
}

var (
	shellBlock = regexp.MustCompile("(?ms)^```sh\n(.*?)^```")
	examples   = regexp.MustCompile("(?ms)^### Examples\n\n```\n(.*?)^```")
)

// documentedCommands are the commands of a page's blocks, without comments and sudo.
func documentedCommands(page string) (commands []string) {
	blocks := shellBlock.FindAllStringSubmatch(page, -1)
	for _, b := range append(blocks, examples.FindAllStringSubmatch(page, -1)...) {
		for line := range strings.Lines(strings.ReplaceAll(b[1], "\\\n", " ")) {
			line, _, _ = strings.Cut(line, " #")
			line = strings.TrimPrefix(strings.TrimSpace(line), "sudo ")
			if line != "" {
				commands = append(commands, strings.Join(strings.Fields(line), " "))
			}
		}
	}
	return commands
}

// Every command of the README and the documents runs, or exceptions says why not.
func TestDocumentedCommandsRun(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: it builds both programs")
	}
	programs := buildPrograms(t)
	used, ran, told := map[int]bool{}, 0, 0
	seen := map[string]bool{}
	for _, file := range documents(t) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		dir := readersFolder(t, string(text))
		for _, command := range documentedCommands(string(text)) {
			e, at := exceptionOf(command)
			used[at] = true
			if e.why != "" {
				told++
				continue
			}
			if seen[command] && !strings.Contains(command, "record") {
				continue
			}
			seen[command] = true
			ran++
			code, out := runDocumented(t, dir, programs, command+e.with)
			if code != 0 && e.codes == nil || e.codes != nil && !slices.Contains(e.codes, code) {
				t.Errorf("%s: %s: exit code %d, want one of %v:\n%.800s", file, command+e.with, code, append([]int{}, e.codes...), out)
			}
		}
	}
	t.Logf("%d commands ran, %d say why they do not", ran, told)
	if ran < 40 || told < 80 {
		t.Errorf("%d commands ran, %d do not: the test looks for the wrong thing", ran, told)
	}
	for i, e := range exceptions {
		if !used[i] {
			t.Errorf("no document has a command %q any more", e.command)
		}
	}
}

// documents are the pages that people copy commands from, in an order that is always the same.
func documents(t *testing.T) (files []string) {
	t.Helper()
	for _, glob := range []string{"../*.md", "../docs/*.md", "../docs/guides/*.md", "../docs/reference/*.md", "../docs/results/*.md"} {
		found, err := filepath.Glob(glob)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	}
	return slices.DeleteFunc(files, func(f string) bool { return strings.HasSuffix(f, "CHANGELOG.md") })
}

// buildPrograms builds the programs, and returns their folder.
func buildPrograms(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	cmd := exec.Command("go", "build", "-o", dir, "homenode/cmd/homenode", "homenode/cmd/homenode-hub", "homenode/cmd/homenode-lab")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return dir
}

var firstConfig = regexp.MustCompile("(?ms)^```yaml\n(period: .*?)^```")

// readersFolder has the files that the documents' commands read: the page's own configuration
// with a shorter period, recordings, a machine, and the scenarios of the source tree.
func readersFolder(t *testing.T, page string) string {
	t.Helper()
	dir := t.TempDir()
	config := "period: 1s\n"
	if m := firstConfig.FindStringSubmatch(page); m != nil {
		config = strings.Replace(m[1], "period: 10s", "period: 1s", 1)
	}
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("agent.yaml", config)
	write("new.yaml", "period: 1s\nmao: {strategy: A}\n")
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"sim", "lab"} { // scenarios name shapes
		if err := os.Symlink(filepath.Join(root, name), filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	for name, of := range map[string]string{
		"day.jsonl": "internal/tui/testdata/fake-four.jsonl.gz", "day.jsonl.gz": "internal/tui/testdata/fake-four.jsonl.gz",
		"r.jsonl": classesData + "rabbit.jsonl.gz", "d.jsonl": classesData + "devil.jsonl.gz", "m.jsonl": classesData + "memory.jsonl.gz",
		"f.jsonl": classesData + "far.jsonl.gz", "c.jsonl": classesData + "crowded.jsonl.gz",
	} {
		text, err := os.ReadFile(filepath.Join(root, of))
		if err != nil {
			t.Fatal(err)
		}
		write(name, string(text))
	}
	return dir
}

const classesData = "cmd/homenode/testdata/classes/reference-"

// runDocumented runs a command line as a shell does, with both programs in PATH.
func runDocumented(t *testing.T, dir, programs, command string) (code int, out string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute) // a limit, not a measurement
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-c", command)
	cmd.Dir, cmd.WaitDelay = dir, time.Second
	cmd.Env = append(os.Environ(), "PATH="+programs+":"+os.Getenv("PATH"), "HOME="+dir, "XDG_STATE_HOME="+dir)
	text, err := cmd.CombinedOutput()
	if exited := (*exec.ExitError)(nil); errors.As(err, &exited) {
		return exited.ExitCode(), string(text)
	}
	if err != nil {
		t.Fatalf("%s: %v", command, err)
	}
	return 0, string(text)
}
