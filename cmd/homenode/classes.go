// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"

	"github.com/spf13/cobra"

	"homenode/internal/cli"
	"homenode/internal/control/host"
	"homenode/internal/exit"
	"homenode/internal/interference"
	"homenode/internal/schema"
	"homenode/internal/views"
)

type classesOptions struct {
	constants  string
	references []string
	workload   string
	output     string
	stderr     *os.File
}

func classesCommand() *cobra.Command {
	o := classesOptions{stderr: os.Stderr}
	cmd := &cobra.Command{
		Use:   "classes [RECORDING]…",
		Short: "Classify a recording's workloads as sheep, rabbits and devils, by how they share a cache",
		Long: "A rabbit is fast with the cache that it has, and slow without; a devil takes the cache from others; a sheep does neither.\n" +
			"RECORDING is a file of 'homenode record --windows FILE --penalty', gzipped or not. Several recordings of one machine\n" +
			"are read as one: a workload that ran alone in one and among others in another is known better.\n\n" +
			"The classes are estimated from counters, with constants of the machine. The default constants are from simulated\n" +
			"machines. Make your own from recordings of five loads, each on one CPU and for three windows or more.\n" +
			"homenode-load, which 'make lab' builds, provides these loads:\n\n" +
			"  rabbit   chase over half of a last-level cache, alone in it, with its memory on its own node\n" +
			"  devil    stream over four times the cache, alone\n" +
			"  memory   chase over eight times the cache, alone\n" +
			"  far      the same as memory, with its memory on another node\n" +
			"  crowded  the same as memory, with the devil on another CPU of the cache\n\n" +
			"With --reference and without RECORDING it prints the constants as text, for --constants.",
		Example: "  homenode record --windows day.jsonl --for 10m --penalty\n  homenode classes day.jsonl --constants machine.yaml\n" +
			"  homenode classes --workload /ref --reference rabbit=r.jsonl --reference devil=d.jsonl \\\n    --reference memory=m.jsonl --reference far=f.jsonl --reference crowded=c.jsonl > machine.yaml",
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := cli.CheckOutput(o.output); err != nil {
				return err
			}
			return runClasses(cmd.Context(), cmd.OutOrStdout(), args, o)
		},
	}
	cli.Exits(cmd, "3", "complete, but the recording was cut off", "4", "there is no such workload in it")
	cmd.Flags().StringVar(&o.constants, "constants", "", "file with constants of the machine, as --reference prints them")
	cmd.Flags().StringArrayVar(&o.references, "reference", nil, "NAME=RECORDING of a reference load: rabbit, devil, memory, far or crowded; give all five")
	cmd.Flags().StringVar(&o.workload, "workload", "", "pattern of the workloads to classify, e.g. '/demo/*'; with --reference: of the load")
	cli.OutputFlag(cmd, &o.output)
	cli.Writes(cmd, interference.Result{}, views.ConstantsForm{})
	return cmd
}

func runClasses(ctx context.Context, w io.Writer, files []string, o classesOptions) error {
	var err error
	switch _, bad := path.Match(o.workload, ""); {
	case bad != nil:
		err = exit.BadInput(fmt.Errorf("--workload is %q: %w", o.workload, bad))
	case len(o.references) > 0 && (len(files) > 0 || o.constants != ""):
		err = exit.BadInput(errors.New("--reference prints constants and takes neither a recording nor --constants: pass its output to 'homenode classes --constants'"))
	case len(o.references) > 0:
		err = o.calibrate(ctx, w)
	case len(files) == 0:
		err = exit.BadInput(errors.New("want a recording ('homenode record --windows FILE --penalty' writes one), or --reference"))
	default:
		err = o.tell(ctx, w, files)
	}
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return errors.New("interrupted: nothing was printed")
	}
	return err
}

// calibrate prints the constants that follow from all references.
func (o classesOptions) calibrate(ctx context.Context, w io.Writer) error {
	f, notes, whole, err := host.Calibrate(ctx, o.references, o.workload, o.stderr)
	if err != nil {
		return exit.BadInput(err)
	}
	if err = views.Constants(w, f, notes, o.output); err == nil && !whole {
		return exit.With(exit.Partly, errors.New("a reference was cut off: the constants are from the part that is left"))
	}
	return err
}

// tell prints the classes of the workloads of recordings.
func (o classesOptions) tell(ctx context.Context, w io.Writer, files []string) error {
	c, err := host.Classify(ctx, files, o.constants, o.workload, o.stderr)
	if err != nil {
		return err
	}
	if o.output == "json" {
		err = schema.NewEncoder(w).Encode(c.Result)
	} else {
		err = views.Classes(w, c.Result, o.constants, c.Own)
	}
	if err == nil && c.CutOff {
		return exit.With(exit.Partly, nil)
	}
	return err
}
