// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"homenode/internal/agent"
)

// pages are the README and all documents that people copy from.
func pages(t *testing.T) map[string]string {
	t.Helper()
	files, err := filepath.Glob("../../docs/*.md")
	more, err2 := filepath.Glob("../../docs/guides/*.md")
	if err != nil || err2 != nil {
		t.Fatal(err, err2)
	}
	all := map[string]string{}
	for _, file := range append(append(files, more...), "../../README.md") {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all[strings.TrimPrefix(file, "../../")] = string(text)
	}
	return all
}

var block = regexp.MustCompile("(?ms)^```(\\w+)\n(.*?)^```")

// Every example of a configuration in the documents is one that the agent takes.
func TestDocumentedConfigurations(t *testing.T) {
	n := 0
	for file, text := range pages(t) {
		for _, b := range block.FindAllStringSubmatch(text, -1) {
			if b[1] != "yaml" || notConfig(b[2]) {
				continue
			}
			n++
			if _, err := agent.ParseConfig([]byte(b[2]), file); err != nil {
				t.Errorf("%v", err)
			}
		}
	}
	if n < 4 {
		t.Errorf("%d examples: the test looks for the wrong thing", n)
	}
}

// notConfig is YAML of other files: shapes, mixes, scenarios, Prometheus, the hub (whose tests read them).
func notConfig(text string) bool {
	for _, first := range []string{"scrape_configs", "machine:", "workloads:", "groups:", "horizon:", "names:", "valid_for:"} {
		if strings.Contains(text, "\n"+first) || strings.HasPrefix(text, first) {
			return true
		}
	}
	return false
}

// Every homenode command in the documents has arguments and flags that the program takes.
// They are only parsed: internal.TestDocumentedCommandsRun runs those that run anywhere.
func TestDocumentedCommands(t *testing.T) {
	n := 0
	for file, text := range pages(t) {
		for _, b := range block.FindAllStringSubmatch(text, -1) {
			if b[1] != "sh" {
				continue
			}
			for _, line := range strings.Split(strings.ReplaceAll(b[2], "\\\n", " "), "\n") {
				args := homenodeLine(line)
				if len(args) == 0 {
					continue
				}
				n++
				root := rootCommand()
				root.InitDefaultCompletionCmd()
				cmd, rest, err := root.Find(args)
				if err == nil {
					cmd.InitDefaultHelpFlag()
					cmd.InitDefaultVersionFlag()
					err = cmd.ParseFlags(rest)
				}
				if err == nil {
					err = cmd.ValidateArgs(cmd.Flags().Args())
				}
				if err != nil {
					t.Errorf("%s: %s: %v", file, strings.TrimSpace(line), err)
				}
			}
		}
	}
	if n < 30 {
		t.Errorf("%d commands: the test looks for the wrong thing", n)
	}
}

// homenodeLine is the arguments of a line "[sudo] homenode …", without what the shell takes.
func homenodeLine(line string) []string {
	line, _, _ = strings.Cut(line, " #")
	words := shellWords(line)
	if len(words) > 0 && words[0] == "sudo" {
		words = words[1:]
	}
	if len(words) < 2 || filepath.Base(words[0]) != "homenode" {
		return nil
	}
	for i, w := range words {
		if i > 0 && (strings.ContainsAny(w[:min(1, len(w))], "|>&;<") || w == "2>") {
			return words[1:i]
		}
	}
	return words[1:]
}

var shellWord = regexp.MustCompile(`'([^']*)'|"([^"]*)"|(\S+)`)

func shellWords(line string) (words []string) {
	for _, m := range shellWord.FindAllStringSubmatch(line, -1) {
		words = append(words, m[1]+m[2]+m[3])
	}
	return words
}
