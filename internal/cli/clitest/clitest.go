// SPDX-License-Identifier: Apache-2.0

// Package clitest runs command lines in tests.
package clitest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"homenode/internal/cli"
	"homenode/internal/cli/reference"
	"homenode/internal/exit"
	"homenode/internal/golden"
)

// Run runs a command line and returns exit code, stdout and stderr.
func Run(root *cobra.Command, args ...string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	root.SetArgs(args)
	root.SetOut(&out)
	root.SetErr(&errs)
	cmd, err := root.ExecuteContextC(context.Background())
	code = cli.Finish(root.Name(), err, &errs)
	if !cli.Documented(cmd, code) {
		panic(undocumented(cmd, args, code))
	}
	if err := fitsSchema(cmd, out.String()); err != nil {
		panic(fmt.Sprintf("%s %q: its output is not as schema/%s has it: %v", cmd.CommandPath(), args, cli.SchemaFile(cmd), err))
	}
	return code, out.String(), errs.String()
}

// undocumented is what a test says of an exit code that docs/reference/exit-codes.md lacks.
func undocumented(cmd *cobra.Command, args []string, code int) string {
	return fmt.Sprintf("%s %q: exit code %d is not documented: see cli.Exits", cmd.CommandPath(), args, code)
}

// ExitCodes checks that docs/reference/exit-codes.md has the codes of the commands. 'make
// reference' writes it.
func ExitCodes(t *testing.T, root *cobra.Command) {
	t.Helper()
	_, table, _ := Run(root, "reference", "--exit-codes")
	page, err := os.ReadFile("../../docs/reference/exit-codes.md")
	if err != nil || !strings.Contains(string(page), table) {
		t.Errorf("docs/reference/exit-codes.md has not the table below (%v): run 'make reference'\n%s", err, table)
	}
}

// RunCaught runs a command line as the program does, and returns exit code and
// stderr.
func RunCaught(t *testing.T, root *cobra.Command, args ...string) (int, string) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	old := os.Stderr
	os.Stderr = w
	defer func() { os.Stderr = old }()
	code := cli.Run(context.Background(), root, args)
	w.Close()
	if cmd, _, err := root.Find(args); err == nil && !cli.Documented(cmd, code) {
		t.Error(undocumented(cmd, args, code))
	}
	text, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return code, string(text)
}

// WriteFile writes a file, makes its folder, and returns its path.
func WriteFile(t *testing.T, path, text string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// FreeAddress is an address of loopback that can be listened at now, for a program that is
// about to start.
func FreeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// Reference checks that docs/reference/NAME.md matches the commands. 'make reference' writes it.
func Reference(t *testing.T, root *cobra.Command, name string) {
	t.Helper()
	text, err := reference.Markdown(root)
	if err != nil {
		t.Fatal(err)
	}
	golden.Check(t, "../../docs/reference/"+name+".md", text)
}

// JSONEverywhere checks that every command has -o with json and yaml, but those of a list,
// each with its reason. A command of the list that has it, or is not there, is an error.
func JSONEverywhere(t *testing.T, root *cobra.Command, without map[string]string) {
	t.Helper()
	seen := map[string]bool{}
	var walk func(cmd *cobra.Command)
	walk = func(cmd *cobra.Command) {
		if cmd.Name() == "completion" { // scripts of shells
			return
		}
		for _, sub := range cmd.Commands() {
			walk(sub)
		}
		name := strings.TrimPrefix(cmd.CommandPath(), root.Name()+" ")
		if cmd == root || !cmd.Runnable() || cmd.HasSubCommands() && cmd.LocalFlags().Lookup("output") == nil {
			return
		}
		flag := cmd.LocalFlags().Lookup("output")
		has := flag != nil && strings.Contains(flag.Usage, "json") && strings.Contains(flag.Usage, "yaml")
		seen[name] = true
		if _, ok := cli.SchemaOf(cmd); has && !ok {
			t.Errorf("%s does not say what it writes: add cli.Writes", name)
		}
		switch why := without[name]; {
		case !has && why == "":
			t.Errorf("%s has no -o json: add cli.OutputFlag, or say here why not", name)
		case has && why != "":
			t.Errorf("%s has -o json, and is on the list of those without: %s", name, why)
		}
	}
	walk(root)
	schemasAsWritten(t, root)
	for name := range without {
		if !seen[name] {
			t.Errorf("there is no command %q", name)
		}
	}
}

// ManPages writes the man pages of a program and checks that some of them contain
// a text.
func ManPages(t *testing.T, root *cobra.Command, wanted map[string]string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "man")
	if code, _, errs := Run(root, "reference", "--man", dir); code != exit.Done {
		t.Fatalf("exit code %d: %s", code, errs)
	}
	for name, want := range wanted {
		if text, err := os.ReadFile(filepath.Join(dir, name)); err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%s: no %q (%v) in:\n%.1000s", name, want, err, text)
		}
	}
}

// schemasAsWritten checks the files in schema. 'make reference' writes them.
func schemasAsWritten(t *testing.T, root *cobra.Command) {
	t.Helper()
	dir := t.TempDir()
	if err := cli.WriteSchemas(root, dir); err != nil {
		t.Fatal(err)
	}
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		text, err := os.ReadFile(filepath.Join(dir, f.Name()))
		if err != nil {
			t.Fatal(err)
		}
		golden.Check(t, "../../schema/"+f.Name(), text)
	}
}
