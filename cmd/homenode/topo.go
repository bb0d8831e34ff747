// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"homenode/internal/kernel"
	"homenode/internal/machine"
	"homenode/internal/report"
	"homenode/internal/report/topology"
)

// topoFlags say what to show, and how.
type topoFlags struct {
	machineSource
	output, svg, hwloc, profile string
}

func topoCommand() *cobra.Command {
	var f topoFlags
	cmd := &cobra.Command{
		Use:   "topo",
		Short: "Show a machine: nodes, CPUs, caches, memory, distances, devices",
		Long: "Shows the machine it runs on, or one that --root, --from-hwloc or --shape names.\n\n" +
			"What the kernel or the firmware does not tell is unknown: null in JSON. If a part could not\nbe read or believed, a line on stderr says so, and the exit code is 3.",
		Example: "  homenode topo\n  homenode topo --svg machine.svg\n  homenode topo --root homenode-record.tar.gz -o json\n  homenode topo --profile profile.json\n  homenode topo --hwloc - | lstopo -i - --if xml",
		Args:    exactly(0, "no arguments"),
		RunE:    func(cmd *cobra.Command, _ []string) error { return showTopology(cmd, f) },
	}
	f.addFlags(cmd)
	outputFlag(cmd, &f.output)
	cmd.Flags().StringVar(&f.svg, "svg", "", "write a picture to this file; - is standard output, and then nothing else is")
	profileFlag(cmd, &f.profile)
	cmd.Flags().StringVar(&f.hwloc, "hwloc", "", "write hwloc's XML to this file, for lstopo; - as above")
	return cmd
}

func showTopology(cmd *cobra.Command, f topoFlags) error {
	if err := errors.Join(checkOutput(f.output), f.check(cmd)); err != nil {
		return err
	}
	if f.svg == "-" && f.hwloc == "-" || (f.svg == "-" || f.hwloc == "-") && cmd.Flags().Changed("output") {
		return badInput(errors.New("one thing only can go to standard output: name a file instead of one -"))
	}
	m, problems, err := f.read(cmd.ErrOrStderr())
	if err != nil {
		return err
	}
	var options []topology.Option
	if f.profile != "" {
		p, err := readProfile(f.profile, m, f.cpuModel())
		if err != nil {
			return err
		}
		options = append(options, topology.WithProfile(p))
	}
	if err := writeTopology(cmd, f, m, problems, options); err != nil {
		return err
	}
	return partly(cmd.ErrOrStderr(), problems)
}

func writeTopology(cmd *cobra.Command, f topoFlags, m machine.Machine, problems []string, options []topology.Option) error {
	out := cmd.OutOrStdout()
	if err := writeTo(out, f.svg, func(w io.Writer) error { return topology.SVG(w, m, options...) }); err != nil {
		return err
	}
	if err := writeTo(out, f.hwloc, func(w io.Writer) error { return machine.WriteHwloc(w, m) }); err != nil {
		return err
	}
	switch {
	case f.svg == "-" || f.hwloc == "-":
		return nil
	case f.output == "json":
		return topology.JSON(out, m, problems, options...)
	}
	return topology.Text(out, m, options...)
}

// writeTo writes a file whole or not at all; "-" is out, "" is nowhere.
func writeTo(out io.Writer, path string, write func(io.Writer) error) error {
	if path == "" {
		return nil
	}
	var b bytes.Buffer
	if err := write(&b); err != nil {
		return err
	}
	if path == "-" {
		_, err := out.Write(b.Bytes())
		return err
	}
	return replaceFile(path, b.Bytes(), 0o644)
}

// replaceFile writes a file whole or not at all, whatever mode an older one of that
// name had. A link is not followed, and a device, /dev/null, not replaced.
func replaceFile(path string, data []byte, mode fs.FileMode) error {
	if st, err := os.Lstat(path); err == nil && !st.Mode().IsRegular() {
		return badInput(fmt.Errorf("write %s: it is there and not a regular file: name another", path))
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".homenode-*") // 0600
	if err != nil {
		return badInput(fmt.Errorf("write %s: %w", path, err))
	}
	defer os.Remove(f.Name()) // gone already when all went well
	_, err = f.Write(data)
	if err = errors.Join(err, f.Chmod(mode), f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

// mostProblems is how many lines stderr gets: a broken tree can have thousands.
const mostProblems = 20

// partly prints what could not be read, a line each, and makes it an exit code.
func partly(w io.Writer, problems []string) error {
	for i, p := range problems {
		if i == mostProblems {
			fmt.Fprintf(w, "homenode: %d more of these\n", len(problems)-i)
			break
		}
		fmt.Fprintln(w, "homenode: "+p)
	}
	if len(problems) > 0 {
		return codeError{code: exitPartly}
	}
	return nil
}

// sentences takes joined errors apart, a line each, fit for a terminal.
func sentences(err error) []string {
	if err == nil {
		return nil
	}
	var lines []string
	for line := range strings.SplitSeq(err.Error(), "\n") {
		if line = report.Printable(line); line != "" {
			lines = append(lines, line)
		}
	}
	return lines
}

// usable passes a machine on with what could not be read, unless there is none:
// then all there is to say is a sentence. What the firmware contradicts itself in
// was read well, and is a warning that comes with the machine (Doubts).
func usable(m machine.Machine, err error, from string) (machine.Machine, []string, error) {
	problems := sentences(err)
	if len(m.CPUs) > 0 && len(m.Nodes) > 0 {
		return m, slices.DeleteFunc(problems, func(p string) bool {
			return slices.ContainsFunc(m.Doubts, func(d string) bool { return strings.HasSuffix(p, d) })
		}), nil
	}
	switch {
	case errors.Is(err, machine.ErrNoCPU):
		err = machine.ErrNoCPU
	case len(problems) > 0:
		err = errors.New(problems[0])
	default:
		err = errors.New("it describes no CPU and no node")
	}
	return machine.Machine{}, nil, badInput(fmt.Errorf("read machine from %s: %w", from, err))
}

// liveMachine reads the machine this runs on.
func liveMachine() (machine.Machine, []string, error) {
	m, err := kernel.ReadMachine(kernel.At("/"))
	return usable(m, err, "/")
}
