// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"homenode/internal/cli"
	"homenode/internal/exit"
	"homenode/internal/lab"
	"homenode/internal/machine"
	"homenode/internal/set"
	"homenode/internal/source"
	"homenode/lab/shapes"
)

// labFlags are the flags of every lab command.
type labFlags struct {
	dir    string // built files
	shapes string // folder of shape files
	bin    string // folder of the programs for the guest
	guest  string
	cgroup string
	flat   bool
	hmat   bool

	counters    int
	personality string
}

// inGuest are the commands that run inside the lab.
func inGuest() []*cobra.Command {
	return []*cobra.Command{labGuest(), labCalibrate(), labSample(), labUncore(), labGroups(), labCount(), labProbe(), labHot(), labIsolate(), labArm()}
}

func (f *labFlags) addFlags(cmd *cobra.Command) *cobra.Command {
	flags := cmd.Flags()
	f.addShapes(cmd)
	f.addBin(cmd)
	flags.StringVar(&f.dir, "lab", "", labHelp)
	flags.StringVar(&f.guest, "guest", lab.Busybox, "system of the guest: busybox, or debian with systemd and containerd ('make lab-debian')")
	flags.StringVar(&f.cgroup, "cgroup", "v2", "cgroup version in the guest: v1 or v2")
	flags.BoolVar(&f.flat, "flat", false, "hide the nodes from the guest's kernel (numa=off); the model keeps them")
	flags.BoolVar(&f.hmat, "hmat", false, "make the firmware report latencies and bandwidths")
	flags.IntVar(&f.counters, "counters", 0, "general-purpose counters of each CPU's PMU; more events than that are multiplexed (0: the module's default, 8 for the lab's own)")
	flags.StringVar(&f.personality, "personality", "", "CPU that /proc/cpuinfo and the PMUs look like: "+strings.Join(lab.Personalities, ", ")+" (default: the lab's own)")
	return cmd
}

func (f *labFlags) addBin(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.bin, "bin", "", "folder of homenode and homenode-lab for the guest (default: where this program is)")
}

func (f *labFlags) addShapes(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.shapes, "shapes", "", "folder of shape files, instead of the program's own")
}

func labShapes() *cobra.Command {
	var f labFlags
	var output string
	cmd := &cobra.Command{
		Use: "shapes", Short: "List the machines that the lab can model", Args: cli.Exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := cli.CheckOutput(output); err != nil {
				return err
			}
			names, err := shapeNames(f.shapes)
			if err != nil {
				return err
			}
			var rows [][2]string
			for _, name := range names {
				s, err := source.Shape(f.shapes, name)
				if err != nil {
					return err
				}
				rows = append(rows, [2]string{s.Name, s.About})
			}
			if output == "json" {
				return listJSON(cmd.OutOrStdout(), rows)
			}
			for _, r := range rows {
				fmt.Fprintf(cmd.OutOrStdout(), "%-10s %s\n", r[0], r[1])
			}
			return nil
		},
	}
	f.addShapes(cmd)
	cli.OutputFlag(cmd, &output)
	cli.Writes(cmd, listed{})
	return cmd
}

// shapeNames lists the shapes of a folder, or the program's own.
func shapeNames(folder string) (names []string, err error) {
	if folder == "" {
		return shapes.Names(), nil
	}
	files, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
	if err != nil || len(files) == 0 {
		return nil, exit.BadInput(fmt.Errorf("list shapes: none in %s: name another folder, or leave out --shapes", folder))
	}
	for _, file := range files {
		names = append(names, strings.TrimSuffix(filepath.Base(file), ".yaml"))
	}
	return names, nil
}

// labOptions collects the options of a boot. A missing file is bad input.
func labOptions(f *labFlags, shape string) (lab.Options, error) {
	s, err := source.Shape(f.shapes, shape)
	if err != nil {
		return lab.Options{}, err
	}
	if f.cgroup != "v1" && f.cgroup != "v2" {
		return lab.Options{}, exit.BadInput(fmt.Errorf("--cgroup is %q: want v1 or v2", f.cgroup))
	}
	if f.counters < 0 {
		return lab.Options{}, exit.BadInput(fmt.Errorf("--counters is %d: want 1 or more, or 0 for the default", f.counters))
	}
	a, err := labAssets(above(), f.dir)
	if err != nil {
		return lab.Options{}, exit.BadInput(err)
	}
	o := lab.Options{Shape: s, Assets: a, Bin: f.bin, Guest: f.guest, Cgroup: f.cgroup, Flat: f.flat, HMAT: f.hmat, Counters: f.counters, Personality: f.personality}
	return o, exit.BadInput(o.Check())
}

func labShell() *cobra.Command {
	var f labFlags
	return cli.CompleteArgument(f.addFlags(&cobra.Command{
		Use: "shell SHAPE", Short: "Open a shell in the lab", Args: cli.Exactly(1, "a shape's name"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o, err := labOptions(&f, args[0])
			if err != nil {
				return err
			}
			return lab.Shell(cmd.Context(), o)
		},
	}), shapes.Names)
}

func labRun() *cobra.Command {
	var f labFlags
	return cli.CompleteArgument(f.addFlags(cli.Exits(&cobra.Command{
		Use: "run SHAPE -- COMMAND…", Short: "Boot the lab, run one command in it, and end it",
		Args: cli.AtLeast(2, "a shape and a command"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o, err := labOptions(&f, args[0])
			if err != nil {
				return err
			}
			return runInLab(cmd, o, args[1:])
		},
	}, cli.AnyExit, "the command's own; 1 or 2 if the lab did not boot or ended")), shapes.Names)
}

func runInLab(cmd *cobra.Command, o lab.Options, argv []string) error {
	shown := showBoot(cmd.ErrOrStderr(), o)
	g, err := lab.Boot(cmd.Context(), o)
	shown()
	if err != nil {
		return err
	}
	defer g.Close()
	if g.Note != "" {
		fmt.Fprintln(cmd.ErrOrStderr(), "homenode-lab: "+g.Note)
	}
	r, err := g.RunLines(cmd.Context(), func(l string) { fmt.Fprintln(cmd.ErrOrStderr(), l) }, argv...)
	fmt.Fprint(cmd.OutOrStdout(), r.Stdout) // also the output of an interrupted command
	if err != nil {
		return err
	}
	if r.Exit != 0 {
		return exit.With(r.Exit, nil)
	}
	return nil
}

// showBoot shows on a terminal that a long boot is under way, until the
// returned function is called. The busybox guest boots too fast for that.
func showBoot(w io.Writer, o lab.Options) (end func()) {
	if o.Guest != lab.Debian || !cli.IsTerminal(w) {
		return func() {}
	}
	show, stop, stopped := cli.ProgressLine(w), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			show(0, 1, "booting "+o.Shape.Name+" with Debian: 20 s to a minute, on a busy host more")
			select {
			case <-stop:
				fmt.Fprint(w, "\r\x1b[K")
				return
			case <-tick.C:
			}
		}
	}()
	return func() {
		close(stop)
		<-stopped
	}
}

// labGuest is the guest's server, started by lab/guest/init.
func labGuest() *cobra.Command {
	return &cobra.Command{
		Use: "guest", Hidden: true, Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			path, err := lab.FindPort("/")
			if err != nil {
				return exit.BadInput(err)
			}
			port, err := os.OpenFile(path, os.O_RDWR, 0)
			if err != nil {
				return err
			}
			defer port.Close()
			note, err := fit()
			return lab.Serve(port, "/dev/vda", note, err)
		},
	}
}

func labCalibrate() *cobra.Command {
	return &cobra.Command{
		Use: "calibrate", Hidden: true, Short: "Inside the lab: check that memory is counted on its node", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			note, err := fit()
			if note != "" {
				fmt.Fprintln(cmd.OutOrStdout(), "homenode-lab: "+note)
			}
			return err
		},
	}
}

// fit calibrates if the guest can do that, and otherwise says why not.
func fit() (note string, err error) {
	cmdline, err := os.ReadFile("/proc/cmdline")
	if err != nil {
		return "", err
	}
	if note := lab.Flat(cmdline); note != "" {
		return note, nil
	}
	return "", calibrate()
}

func calibrate() error {
	m, err := machine.ParseSysfs(os.DirFS("/"), "live")
	if err != nil {
		return err
	}
	nodes := set.NodeSet{}
	for _, n := range m.Nodes {
		if mem, ok := n.Memory.Get(); ok && mem > 0 {
			nodes = nodes.With(n.ID)
		}
	}
	return lab.Calibrate(nodes)
}
