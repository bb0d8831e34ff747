// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"homenode/internal/exit"
	"homenode/internal/kernel/membench"
	"homenode/internal/kernel/unix"
	"homenode/internal/lab/model"
	"homenode/internal/schema"
	"homenode/internal/set"
	"homenode/internal/unit"
)

type probeFlags struct {
	cpus         string
	node, to     int
	nodes        string
	bytes, work  string
	policy       string
	owner, pause int
	reads        int
	writes       int
	length, warm time.Duration
	huge, shared bool
	repeat       int
}

// probeReport is the output of `homenode-lab probe` for a thread, and for moved
// pages.
type probeReport struct {
	Clock    string                  `json:"clock"`
	Threads  []membench.ThreadResult `json:"threads,omitempty"`
	NSPerOp  []float64               `json:"ns_per_op,omitempty"`
	Moved    *membench.Moved         `json:"moved,omitempty"`
	Problems []string                `json:"problems,omitempty"`
	WallMS   int64                   `json:"wall_ms"`
}

// labProbe is for the lab's tests: it does one job by the model's clock, and
// prints JSON.
func labProbe() *cobra.Command {
	f := probeFlags{}
	cmd := &cobra.Command{
		Use: "probe", Hidden: true, Short: "Do one measured piece of work by the model's clock, and print it", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return probeOnce(cmd, f) },
	}
	flags := cmd.Flags()
	flags.StringVar(&f.cpus, "cpus", "0", "CPUs, each with one thread")
	flags.IntVar(&f.node, "node", 0, "node of the memory")
	flags.StringVar(&f.nodes, "nodes", "", "nodes over which the memory is spread, instead of --node")
	flags.StringVar(&f.bytes, "bytes", "4MiB", "size of the memory")
	flags.StringVar(&f.policy, "policy", "bind", "policy of the memory")
	flags.StringVar(&f.work, "work", "chase", "kind of work: chase, read, write, copy, mixed, transfer or move")
	flags.BoolVar(&f.shared, "shared", false, "share one buffer between all threads")
	flags.IntVar(&f.owner, "owner", 0, "transfer: CPU that dirties the lines")
	flags.IntVar(&f.to, "to", 0, "move: target node")
	flags.IntVar(&f.pause, "pause", 0, "instructions of waiting after each operation")
	flags.IntVar(&f.reads, "reads", 1, "mixed: number of lines that are read")
	flags.IntVar(&f.writes, "writes", 1, "mixed: number of lines that are then written")
	flags.DurationVar(&f.length, "length", 100*time.Millisecond, "time to measure")
	flags.DurationVar(&f.warm, "warm", 20*time.Millisecond, "warm-up, which is not measured")
	flags.BoolVar(&f.huge, "huge", false, "use huge pages")
	flags.IntVar(&f.repeat, "repeat", 1, "number of measurements; the last is printed")
	return cmd
}

func probeOnce(cmd *cobra.Command, f probeFlags) error {
	model, err := model.Open("/sys")
	if err != nil {
		return err
	}
	clock, err := model.ProbeClock()
	if err != nil {
		return err
	}
	p, err := membench.New(unix.NewLive(), clock)
	if err != nil {
		return err
	}
	defer p.Close()
	r := probeReport{Clock: p.Clock().Name()}
	for range f.repeat {
		began := time.Now()
		if err := probeJob(cmd, p, f, &r); err != nil {
			return err
		}
		r.WallMS = time.Since(began).Milliseconds()
	}
	for _, err := range p.CountProblems() {
		r.Problems = append(r.Problems, err.Error())
	}
	slices.Sort(r.Problems)
	r.Problems = slices.Compact(r.Problems) // the threads report the same problems
	return schema.NewEncoder(cmd.OutOrStdout()).Encode(r)
}

func probeJob(cmd *cobra.Command, p *membench.Prober, f probeFlags, r *probeReport) error {
	size, err := unit.ParseBytes(f.bytes)
	if err != nil {
		return exit.BadInput(err)
	}
	cpus, err := set.ParseCPUs(f.cpus)
	if err != nil {
		return exit.BadInput(err)
	}
	if f.work == "move" {
		first, _ := cpus.First()
		moved, err := p.Move(cmd.Context(), membench.Move{From: f.node, To: f.to, Bytes: size, Huge: f.huge, CPU: first})
		r.Moved = &moved
		return err
	}
	nodes := set.FromNodes(f.node)
	if f.nodes != "" {
		if nodes, err = set.ParseNodes(f.nodes); err != nil {
			return exit.BadInput(err)
		}
	}
	j := membench.Job{Length: f.length, Warm: f.warm}
	for i, cpu := range cpus.IDs() {
		t := membench.Thread{CPU: cpu, Work: membench.Work(f.work), Pause: f.pause, Owner: f.owner, Reads: f.reads, Writes: f.writes, Count: true}
		if !f.shared || i == 0 {
			j.Buffers = append(j.Buffers, membench.Buffer{Bytes: size, Policy: membench.Policy(f.policy), Nodes: nodes, Huge: f.huge})
		}
		t.Buffer = len(j.Buffers) - 1
		j.Threads = append(j.Threads, t)
	}
	res, err := p.Run(cmd.Context(), j)
	if err != nil {
		return fmt.Errorf("probe: %w", err)
	}
	r.Threads, r.NSPerOp = res.Threads, nil
	for _, t := range res.Threads {
		r.NSPerOp = append(r.NSPerOp, float64(t.Quiet)/float64(max(1, t.Ops)))
	}
	return nil
}
