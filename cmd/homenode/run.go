// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"homenode/internal/cli"
	"homenode/internal/control/host"
	"homenode/internal/exit"
	"homenode/internal/kernel"
	"homenode/internal/kernel/launch"
	"homenode/internal/source"
	"homenode/internal/views"
)

// runFlags say how a program or shared memory is placed.
type runFlags struct {
	host.RunFlags
	output  string
	dryRun  bool
	segment segmentFlags
}

// addFlags adds the flags that place a program.
func (f *runFlags) addFlags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.Nodes, "nodes", "", "nodes of the memory policy: 0, 0-1,4, all, !0, +0 or a device such as netdev:eth0")
	cmd.Flags().StringVar(&f.Policy, "policy", "", "memory policy: "+launch.Policies()+"; default with --nodes: bind")
	cmd.Flags().StringVar(&f.CPUs, "cpus", "", "CPUs to run on: 0-3, or all; default with bind, preferred, preferred-many and local: those of --nodes")
	cmd.Flags().StringVar(&f.Needs, "needs", "", "memory that the program needs, such as 4GiB; without that much room on the nodes or below a cgroup's limit it is not started")
	cmd.Flags().BoolVar(&f.dryRun, "dry-run", false, "print what would be set and the equivalent numactl command; start nothing")
	cli.OutputFlag(cmd, &f.output)
	cli.Writes(cmd, host.RunPlan{}, views.SegmentReport{})
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
	p, err := host.PlanRun(f.RunFlags, argv)
	if err != nil {
		return exit.BadInput(err)
	}
	if f.dryRun {
		return p.Print(cmd.OutOrStdout(), f.output)
	}
	cli.Tell(cmd.ErrOrStderr(), p.Warnings)
	return exit.BadInput(launch.Exec(kernel.Live(), p.Placement, argv, os.Environ()))
}
