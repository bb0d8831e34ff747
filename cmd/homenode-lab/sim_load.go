// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"homenode/internal/cli"
	"homenode/internal/kernel/unix"
	"homenode/internal/sim/scenario"
	"homenode/internal/source"
)

// resultLimit is above what a result can have: 500,000 rows of some 200 bytes.
const resultLimit = 1 << 28

// simFile is the kind of a file that was given to 'homenode-lab sim'.
type simFile int

const (
	aScenario simFile = iota
	aResult           // result of a scenario
	aFleet            // result of 'homenode-lab sim fleet --out'
	anArena           // result of 'homenode-lab sim arena --out'
	aProfile          // profile of 'homenode bench'
)

// readSim reads a file once (it may be a pipe), and finds its kind by its keys. For
// the file of a fleet or a machine the error says which command reads it.
func readSim(path string) ([]byte, simFile, error) {
	data, err := unix.ReadAtMost(path, resultLimit)
	if err != nil {
		return nil, 0, err
	}
	what := whatIs(data)
	switch what {
	case aFleet:
		err = fmt.Errorf("%s is the result of 'homenode-lab sim fleet', which that command prints: want a scenario, or the result of 'homenode-lab sim run --out'", path)
	case anArena:
		err = fmt.Errorf("%s is the result of 'homenode-lab sim arena', which that command reads: want a scenario, or the result of 'homenode-lab sim run --out'", path)
	case aProfile:
		err = fmt.Errorf("%s is a profile of 'homenode bench': name it in a scenario, as machine: {profile: FILE}", path)
	}
	return data, what, err
}

// whatIs looks at the keys of a JSON object; if it has keys of several kinds, the
// first kind wins. Other text is a scenario: YAML's flow form also begins with {.
func whatIs(data []byte) simFile {
	d := json.NewDecoder(bytes.NewReader(data))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return aScenario
	}
	what := aScenario
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return what
		}
		switch key {
		case "generator_version":
			return aFleet
		case "caveats", "latency", "working_sets":
			return aProfile
		case "mixes", "cells":
			return anArena
		case "digest", "scenario":
			return aResult
		case "workloads", "lasts":
			return aScenario
		case "how":
			what = aResult // unless a key says more
		}
		var skipped json.RawMessage
		if d.Decode(&skipped) != nil {
			return what
		}
	}
	return what
}

// folderOf is the folder of the files that a scenario names: the scenario's own; for
// a pipe, the current one.
func folderOf(path string) string {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return "."
	}
	return filepath.Dir(path)
}

// besideFile opens what a scenario names, relative to it.
type besideFile struct {
	dir    string
	stderr io.Writer
}

func (b besideFile) path(name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(b.dir, name)
}

func (b besideFile) ReadFile(name string) ([]byte, error) {
	return unix.ReadAtMost(b.path(name), source.ProfileLimit)
}

func (b besideFile) Tree(name string) (fs.FS, error) {
	tree, _, err := source.OpenTree(b.path(name), b.stderr)
	return tree, err
}

// simBar shows the progress of a simulation: one line that is rewritten on a
// terminal, else a line at the start.
type simBar struct {
	*cli.StatusLine
	w     io.Writer
	began time.Time
	shown time.Time
}

func newSimBar(w io.Writer, s scenario.Setting) *simBar {
	b := startSimBar(w)
	if !cli.IsTerminal(w) {
		fmt.Fprintf(w, "homenode-lab: simulating %s: %d arms × %d seeds × %v\n", s.Name, len(s.Arms), len(s.Seeds), s.Lasts)
	}
	return b
}

func startSimBar(w io.Writer) *simBar {
	return &simBar{StatusLine: cli.NewStatusLine(w), w: w, began: time.Now()}
}

// simBarEvery is how often the line is rewritten.
const simBarEvery = 100 * time.Millisecond

// show is called by one worker at a time.
func (b *simBar) show(share float64) {
	now := time.Now()
	if !cli.IsTerminal(b.w) || now.Sub(b.shown) < simBarEvery {
		return
	}
	b.shown = now
	left := time.Duration(0)
	if share > 0 {
		left = time.Duration(float64(now.Sub(b.began)) * (1 - share) / share)
	}
	b.ShowBar(cli.Bar{Head: "simulating ", Share: share, Tail: fmt.Sprintf(" %3.0f%%, about %v left", share*100, left.Round(time.Second))}, "", "")
}

func (b *simBar) end() { b.Clear() }
