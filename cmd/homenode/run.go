// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"homenode/internal/cli"
	"homenode/internal/exit"
	"homenode/internal/kernel"
	"homenode/internal/kernel/cgroup"
	"homenode/internal/kernel/launch"
	"homenode/internal/machine"
	"homenode/internal/render"
	"homenode/internal/schema"
	"homenode/internal/set"
	"homenode/internal/source"
	"homenode/internal/unit"
)

// runFlags say how a program or shared memory is placed.
type runFlags struct {
	nodes, cpus, policy, needs, output string
	dryRun                             bool
	segment                            segmentFlags
}

// addFlags adds the flags that place a program.
func (f *runFlags) addFlags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.nodes, "nodes", "", "nodes of the memory policy: 0, 0-1,4, all, !0, +0 or a device such as netdev:eth0")
	cmd.Flags().StringVar(&f.policy, "policy", "", "memory policy: "+launch.Policies()+"; default with --nodes: bind")
	cmd.Flags().StringVar(&f.cpus, "cpus", "", "CPUs to run on: 0-3, or all; default with bind, preferred, preferred-many and local: those of --nodes")
	cmd.Flags().StringVar(&f.needs, "needs", "", "memory that the program needs, such as 4GiB; without that much room on the nodes or below a cgroup's limit it is not started")
	cmd.Flags().BoolVar(&f.dryRun, "dry-run", false, "print what would be set and the equivalent numactl command; start nothing")
	cli.OutputFlag(cmd, &f.output)
	cli.Writes(cmd, plan{}, segmentJSON{})
}

func runCommand() *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:   "run [--nodes NODES] [--policy POLICY] [--cpus CPUS] -- CMD [ARGUMENT]…",
		Short: "Start a program on given CPUs and with a memory policy, or place shared memory",
		Long: "The program replaces homenode: same process, same exit code. Its children inherit\n" +
			"CPUs and policy. If it cannot be started, an error says why.\n\n" +
			"  bind                 memory of --nodes only; when it is full, the program is killed\n" +
			"  preferred            memory of that node while it has some, then of others\n" +
			"  preferred-many       the same with several nodes (Linux 5.15)\n" +
			"  interleave           page by page over --nodes\n" +
			"  weighted-interleave  the same with the weights of /sys/kernel/mm/mempolicy (Linux 6.9)\n" +
			"  local                memory of the node it runs on; with --nodes, it runs on those\n\n" +
			"With bind, preferred, preferred-many and local it runs on the CPUs of --nodes, if they have\n" +
			"any. With --cpus all only the memory is placed. Nearly full nodes cause a warning.\n\n" +
			"Without CMD, --shm, --shmid or --shmkey name shared memory that gets the policy, for\n" +
			"every process that maps it, until it is removed. Pages that exist keep their place, unless\n" +
			"--move is given. Files of other file systems than tmpfs and hugetlbfs keep no policy.\n\n" + source.NodeHelp,
		Example: "  homenode run --nodes 0 -- ./solver input.dat\n" +
			"  homenode run --nodes 0-1 --policy interleave -- java -jar app.jar\n" +
			"  homenode run --nodes 1 --needs 4GiB --dry-run -- ./solver\n" +
			"  homenode run --policy local --nodes 1 -- make -j4\n" +
			"  homenode run --shm /dev/shm/table --create 2GiB --nodes all --policy interleave\n" +
			"  homenode run --shmkey 0x5432 --nodes 1 --move --strict",
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.segment.named(cmd) {
				return placeSegment(cmd, f, args)
			}
			return runPlaced(cmd, f, args)
		},
	}
	cli.Exits(cmd, cli.AnyExit, "the program's own; 2 if it was not started", "3", "shared memory, with --strict and --move: some pages stayed elsewhere")
	cmd.Flags().SetInterspersed(false) // flags after CMD belong to CMD, with or without --
	f.addFlags(cmd)
	f.segment.addFlags(cmd)
	return cmd
}

// plan is what 'run' will do.
type plan struct {
	Schema int `json:"schema"` // 1
	launch.Placement
	Rooms []launch.Room `json:"rooms"` // room on the nodes
	// Cgroup is the tightest memory limit around this process, which the program inherits.
	Cgroup   unit.Opt[cgroup.MemoryRoom] `json:"cgroup_room"`
	Warnings []string                    `json:"notices"`
	Command  []string                    `json:"argv"`
	Numactl  []string                    `json:"numactl"`
}

func runPlaced(cmd *cobra.Command, f runFlags, argv []string) error {
	if err := cli.CheckOutput(f.output); err != nil {
		return err
	}
	if err := f.segment.onlyForSegments(cmd); err != nil {
		return exit.BadInput(err)
	}
	if len(argv) == 0 {
		return exit.BadInput(errors.New("nothing to start: give a command after --, or name shared memory with --shm, --shmid or --shmkey"))
	}
	if f.output != "text" && !f.dryRun {
		return exit.BadInput(fmt.Errorf("-o %s is for --dry-run: the output of a run is the program's", f.output))
	}
	p, err := f.plan(argv)
	if err != nil {
		return exit.BadInput(err)
	}
	if f.dryRun {
		return p.print(cmd.OutOrStdout(), f.output)
	}
	cli.Tell(cmd.ErrOrStderr(), p.Warnings)
	return exit.BadInput(launch.Exec(kernel.Live(), p.Placement, argv, os.Environ()))
}

// plan checks everything that can be checked before the start.
func (f runFlags) plan(argv []string) (plan, error) {
	m, _, err := source.Live()
	if err != nil {
		return plan{}, err
	}
	q, needs, err := f.request(m)
	if err != nil {
		return plan{}, err
	}
	limits, err := launch.ReadLimits(kernel.At("/"))
	if err != nil {
		return plan{}, err
	}
	placement, err := launch.Resolve(q, m, limits)
	if err != nil {
		return plan{}, err
	}
	p := plan{Schema: 1, Placement: placement, Command: argv, Numactl: placement.Numactl(argv), Warnings: []string{}}
	if p.Rooms, err = launch.ReadRoom(kernel.At("/"), memoryOf(placement, q)); err != nil {
		return plan{}, err
	}
	if p.Cgroup, err = cgroup.ReadMemoryRoom(kernel.At("/")); err != nil {
		return plan{}, err
	}
	if err := cmp.Or(launch.Fits(placement, p.Rooms, needs), launch.Allowed(p.Cgroup, needs)); err != nil {
		return plan{}, err
	}
	p.Warnings = append(p.Warnings, launch.Warnings(placement, p.Rooms)...)
	return p, launch.Probe(kernel.Live(), placement)
}

// memoryOf returns the nodes whose memory is taken first: with local, those
// that the program runs on.
func memoryOf(p launch.Placement, q launch.Request) set.NodeSet {
	if p.Policy == launch.Local {
		return q.Nodes
	}
	return p.Nodes
}

// request reads the flags.
func (f runFlags) request(m machine.Machine) (q launch.Request, needs unit.Bytes, err error) {
	if q.Policy, err = launch.ParsePolicy(f.policy); err != nil {
		return q, 0, err
	}
	if q.Nodes, err = source.Nodes("nodes", f.nodes); err != nil {
		return q, 0, err
	}
	switch f.cpus {
	case "":
	case "all":
		q.AllCPUs = true
	default:
		if q.CPUs, err = set.ParseCPUs(f.cpus); err != nil {
			return q, 0, fmt.Errorf("--cpus: %w", err)
		}
	}
	if f.needs != "" {
		if needs, err = unit.ParseBytes(f.needs); err != nil {
			return q, 0, fmt.Errorf("--needs: %w", err)
		}
	}
	if needs > 0 && q.Nodes.IsEmpty() {
		return q, 0, errors.New("--needs is checked against --nodes: name them")
	}
	return q, needs, nil
}

func (p plan) print(w io.Writer, output string) error {
	if output == "json" {
		return schema.NewEncoder(w).Encode(p)
	}
	fmt.Fprintf(w, "command  %s\n", cli.ShellLine(p.Command))
	policy, cpus := "left as it is", "left as they are"
	if p.Policy != "" {
		policy = strings.TrimSpace(string(p.Policy) + " " + p.Nodes.String())
	}
	if !p.CPUs.IsEmpty() {
		cpus = p.CPUs.String()
	}
	fmt.Fprintf(w, "policy   %s\nCPUs     %s\n", policy, cpus)
	for _, r := range p.Rooms {
		fmt.Fprintf(w, "node %-3d %v of %v free, and %v of page cache that could go\n", r.Node, r.Free, r.Total, r.Cache)
	}
	if r, ok := p.Cgroup.Get(); ok {
		fmt.Fprintf(w, "limit    %s\n", render.Printable(r.String()))
	}
	for _, text := range p.Warnings {
		fmt.Fprintf(w, "warning  %s\n", text)
	}
	_, err := fmt.Fprintf(w, "the same %s\n", cli.ShellLine(p.Numactl))
	return err
}
