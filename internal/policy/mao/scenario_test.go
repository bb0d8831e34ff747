// SPDX-License-Identifier: Apache-2.0

package mao

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"homenode/internal/render/words"
	"homenode/internal/window/windowtest"
)

var update = flag.Bool("update", false, "rewrite the outputs in testdata")

// script plays windows to MAO alone: its actions are not carried out, so workloads change
// only when the script says so.
type script struct {
	cfg Config
	st  State
}

func (s *script) Line(h *windowtest.Host, line []string) (string, error) {
	switch line[0] {
	case "config":
		if err := windowtest.Configure(&s.cfg, line[1:]); err != nil {
			return "", err
		}
		return "", s.cfg.Validate()
	case "doubt": // doubt nodes|packages|none: the firmware contradicts itself about them
		return "", doubt(h, line[1])
	case "tick": // tick [N] [verbose]: N windows, the last one's answer
		return s.tick(h, line[1:])
	case "state":
		return s.print()
	}
	return "", fmt.Errorf("unknown line")
}

func doubt(h *windowtest.Host, about string) error {
	h.Machine.Doubts, h.Machine.PackageDoubts = nil, nil
	switch about {
	case "nodes":
		h.Machine.Doubts = []string{"nodes 0-1 all claim cpus 3"}
	case "packages":
		h.Machine.PackageDoubts = []string{"the sibling lists have 4 packages"}
	case "none":
	default:
		return fmt.Errorf("doubt %q: want nodes, packages or none", about)
	}
	return nil
}

func (s *script) tick(h *windowtest.Host, args []string) (string, error) {
	n, verbose := 1, false
	for _, word := range args {
		if verbose = word == "verbose"; !verbose {
			n, _ = strconv.Atoi(word)
		}
	}
	var out strings.Builder
	for range n {
		out.Reset()
		w := h.Window()
		st, actions, reasons := Step(h.Machine, s.cfg, s.st, w)
		s.st = st
		for _, a := range actions {
			fmt.Fprintln(&out, a)
		}
		for _, r := range reasons {
			text := r.Rule + ": " + words.Sentence(r)
			if verbose {
				text = words.Full(r)
			}
			fmt.Fprintf(&out, "  %s %s\n", r.Workload, text)
			for _, alt := range r.Alternatives {
				fmt.Fprintf(&out, "    %s\n", words.Alternative(alt))
			}
		}
	}
	return out.String(), nil
}

func (s *script) print() (string, error) {
	var out bytes.Buffer
	for _, m := range s.st.Workloads {
		line, err := json.Marshal(m)
		if err != nil {
			return "", err
		}
		out.Write(append(line, '\n'))
	}
	return out.String(), nil
}

func TestScenarios(t *testing.T) {
	windowtest.Run(t, "testdata/*.txt", *update, func() windowtest.Script { return &script{cfg: DefaultConfig()} })
}
