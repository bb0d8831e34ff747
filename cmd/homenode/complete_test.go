// SPDX-License-Identifier: Apache-2.0

package main

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"homenode/internal/cli"
	"homenode/internal/exit"
	"homenode/internal/kernel"
)

// A shell gets what exists: workloads and nodes of this machine, shapes, and the fixed
// values of each command.
func TestCompletion(t *testing.T) {
	at, state := completeAt, completeState
	t.Cleanup(func() { completeAt, completeState = at, state })
	completeAt, completeState = migrateTree(t), t.TempDir()
	for _, c := range []struct{ line, want string }{
		{"topo|--shape|f", "far four"},
		{"topo|-o|", "text json yaml"},
		{"bench|show|p.json|-o|", "text json yaml html"},
		{"migrate|--workload|/demo", "/demo/a /demo/b"},
		{"stat|--workload|/other", "/other/a"},
		{"migrate|--to|", "0 1 2 4"},
		{"migrate|--to|0,", "0,1 0,2 0,4"},
		{"run|--nodes|4", "4"},
		{"migrate|--mode|", "live freeze hot"},
		{"migrate|--direct-owner|s", "systemd"},
		{"run|--policy|pref", "preferred preferred-many"},
		{"bench|--only|latency,caches,ba", "latency,caches,bandwidth"},
		{"why|/demo", "/demo/a /demo/b"},
		{"why|/demo/a|", ""},
	} {
		code, out, errs := runWith(append([]string{cobra.ShellCompNoDescRequestCmd}, strings.Split(c.line, "|")...)...)
		lines := strings.Split(strings.TrimSpace(out), "\n")
		if got := strings.Join(lines[:len(lines)-1], " "); code != exit.Done || got != c.want || lines[len(lines)-1] != ":4" {
			t.Errorf("%s: exit code %d, %q, want %q; %s", c.line, code, out, c.want, errs)
		}
	}
}

// Without a machine to read, a shell gets nothing, and no error.
func TestCompletionOfNothing(t *testing.T) {
	old := completeAt
	t.Cleanup(func() { completeAt = old })
	completeAt = kernel.At(t.TempDir())
	for _, line := range []string{"migrate|--to|", "stat|--workload|"} {
		code, out, _ := runWith(append([]string{cobra.ShellCompNoDescRequestCmd}, strings.Split(line, "|")...)...)
		if code != exit.Done || out != ":4\n" {
			t.Errorf("%s: exit code %d, %q", line, code, out)
		}
	}
}

func allCommands(cmd *cobra.Command) []*cobra.Command {
	all := []*cobra.Command{cmd}
	for _, c := range cmd.Commands() {
		all = append(all, allCommands(c)...)
	}
	return all
}

// An installed program is started in any directory, so no default is a path below the
// working directory. A flag has the same type in every command. If it names a file or a
// folder, its type says so.
func TestFlags(t *testing.T) {
	file := regexp.MustCompile(`\.[a-z]+$`)
	types, seen := map[string]string{}, 0
	for _, cmd := range allCommands(rootCommand()) {
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			seen++
			path := strings.Contains(f.DefValue, "/") && !strings.HasSuffix(f.DefValue, "/s") || file.MatchString(f.DefValue)
			if path && !filepath.IsAbs(f.DefValue) {
				t.Errorf("%s --%s: its default is %q, below the working directory", cmd.CommandPath(), f.Name, f.DefValue)
			}
			if slices.Contains([]string{"direct-owner", "svg", "profile", "state", "config", "html", "out"}, f.Name) {
				if was, ok := types[f.Name]; ok && was != f.Value.Type() {
					t.Errorf("%s --%s is %s, elsewhere %s", cmd.CommandPath(), f.Name, f.Value.Type(), was)
				}
				types[f.Name] = f.Value.Type()
			}
			if strings.HasSuffix(f.Name, "owners") {
				t.Errorf("%s --%s: it is --direct-owner elsewhere", cmd.CommandPath(), f.Name)
			}
		})
	}
	if seen < 100 || len(types) < 7 {
		t.Errorf("%d flags, of them %v: too few were looked at", seen, types)
	}
}

// Every command that is not hidden is in a group of the help.
func TestGroups(t *testing.T) {
	root := rootCommand()
	for _, cmd := range root.Commands() {
		if !cmd.Hidden && cmd.GroupID == "" && cmd.Name() != "completion" {
			t.Errorf("%s is in no group", cmd.Name())
		}
	}
	_, help, _ := runWith("--help")
	for _, want := range []string{"Inspect:", "Act:", "Agent:", "Measure:", "completion "} {
		if !strings.Contains(help, want) {
			t.Errorf("no %q in:\n%s", want, help)
		}
	}
	if code, out, _ := runWith("--version"); code != exit.Done || out != "homenode version "+cli.Version+"\n" {
		t.Errorf("exit code %d, %q", code, out)
	}
}

func TestDefaultProfile(t *testing.T) {
	env := func(of map[string]string) func(string) string { return func(name string) string { return of[name] } }
	for _, c := range []struct {
		uid  int
		env  map[string]string
		want string
	}{
		{0, map[string]string{"HOME": "/root"}, "/var/lib/homenode/profile.json"},
		{1000, map[string]string{"HOME": "/home/a"}, "/home/a/.local/state/homenode/profile.json"},
		{1000, map[string]string{"HOME": "/home/a", "XDG_STATE_HOME": "/s"}, "/s/homenode/profile.json"},
	} {
		if got := defaultProfile(c.uid, env(c.env)); got != c.want {
			t.Errorf("%d, %v: %s, want %s", c.uid, c.env, got, c.want)
		}
	}
}
