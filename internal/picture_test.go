// SPDX-License-Identifier: Apache-2.0

// The picture in docs/architecture.md is written from the table in arrows_test.go
// and from the first sentence of each package's comment:
//
//	go test ./internal -run TestArrows -update
package internal_test

import (
	"fmt"
	"go/doc"
	"os"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"homenode/internal/golden"
)

const (
	pictureFile  = "../docs/architecture.md"
	pictureBegin = "<!-- arrows: written by 'go test ./internal -run TestArrows -update' -->\n"
	pictureEnd   = "<!-- /arrows -->\n"
	pictureWidth = 118 // columns of a line
	nameColumn   = 36  // where descriptions begin: after the longest name with its indent
)

func TestArrowsPicture(t *testing.T) {
	data, err := os.ReadFile(pictureFile)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, begins := strings.Cut(string(data), pictureBegin)
	_, after, ends := strings.Cut(rest, pictureEnd)
	if !begins || !ends {
		t.Fatalf("%s: want the picture between the lines %q and %q", pictureFile, pictureBegin, pictureEnd)
	}
	said := descriptions(load(t))
	for name := range places() {
		if said[name] == "" {
			t.Errorf("%s: its package comment must begin with \"Package %s \" and a verb: the picture takes its first sentence", name, last(name))
		}
	}
	golden.Check(t, pictureFile, before+pictureBegin+picture(said)+pictureEnd+after)
}

// picture draws each level, highest first. Inside a room, what is indented is
// imported by what stands above it with less indent.
func picture(said map[string]string) string {
	var b strings.Builder
	b.WriteString("```text\n")
	for level, line := range strings.Split(strings.TrimSpace(architecture), "\n") {
		if slices.Contains(strings.Fields(line), firstPure) {
			b.WriteString("\n─── pure from here down: no os, log, net, wall clock or global random numbers ───\n")
		}
		if level > 0 {
			b.WriteString("\n")
		}
		for _, room := range strings.Split(line, "|") {
			for step, names := range strings.Split(room, ">") {
				for _, name := range strings.Fields(names) {
					drawPackage(&b, step, name, said[name])
				}
			}
		}
	}
	return b.String() + "```\n"
}

func drawPackage(b *strings.Builder, step int, name, text string) {
	if isHelper(name) {
		text += " [tests]"
	} else if slices.Contains(alsoPure, name) {
		text += " [pure]"
	}
	head := strings.Repeat("  ", step) + name
	for _, line := range wrapAt(text, pictureWidth-nameColumn) {
		fmt.Fprintf(b, "%-*s%s\n", nameColumn, head, line)
		head = ""
	}
}

// wrapAt breaks at spaces; a longer word stands alone.
func wrapAt(text string, width int) []string {
	lines := []string{""}
	for _, word := range strings.Fields(text) {
		now := &lines[len(lines)-1]
		switch {
		case *now == "":
			*now = word
		case utf8.RuneCountInString(*now)+1+utf8.RuneCountInString(word) <= width:
			*now += " " + word
		default:
			lines = append(lines, word)
		}
	}
	return lines
}

// descriptions are what packages say of themselves, without "Package x".
func descriptions(files []source) map[string]string {
	all := map[string]string{}
	for _, s := range files {
		if s.file.Doc == nil {
			continue
		}
		text := s.file.Doc.Text()
		for _, kind := range []string{"Package ", "Command "} {
			if rest, ok := strings.CutPrefix(text, kind+last(s.pkg)+" "); ok {
				all[s.pkg] = firstClause(new(doc.Package).Synopsis(rest))
			}
		}
	}
	return all
}

// firstClause ends at the first colon or semicolon that is not in parentheses.
func firstClause(sentence string) string {
	depth := 0
	for i, r := range sentence {
		switch r {
		case '(':
			depth++
		case ')':
			depth--
		case ':', ';':
			if depth == 0 {
				return sentence[:i]
			}
		}
	}
	return strings.TrimSuffix(sentence, ".")
}

func last(name string) string { return name[strings.LastIndex(name, "/")+1:] }

func TestFirstClause(t *testing.T) {
	for text, want := range map[string]string{
		"is the loop on a host: observe, decide, act.": "is the loop on a host",
		"is a peer (numad: its manual): pure.":         "is a peer (numad: its manual)",
		"parses files.":                                "parses files",
	} {
		if got := firstClause(text); got != want {
			t.Errorf("firstClause(%q) = %q, want %q", text, got, want)
		}
	}
}
