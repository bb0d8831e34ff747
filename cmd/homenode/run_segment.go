// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"homenode/internal/views"

	"github.com/spf13/cobra"

	"homenode/internal/cli"
	"homenode/internal/exit"
	"homenode/internal/kernel"
	"homenode/internal/kernel/launch"
	"homenode/internal/schema"
	"homenode/internal/set"
	"homenode/internal/source"
	"homenode/internal/unit"
)

// segmentFlags name shared memory and what happens to its pages.
type segmentFlags struct {
	file, id, key          string
	create, offset, length string
	strict, move, touch    bool
}

// segmentNames name a segment; segmentRest need one of them.
var (
	segmentNames = []string{"shm", "shmid", "shmkey"}
	segmentRest  = []string{"create", "offset", "length", "strict", "move", "touch"}
)

func (f *segmentFlags) addFlags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.file, "shm", "", "file of tmpfs or hugetlbfs to place (numactl's --file)")
	cmd.Flags().StringVar(&f.id, "shmid", "", "ID of the System V segment to place ('ipcs -m' lists them)")
	cmd.Flags().StringVar(&f.key, "shmkey", "", "key of the System V segment to place, 0x5432 or decimal")
	cmd.Flags().StringVar(&f.create, "create", "", "size, such as 2GiB, of shared memory that is created if it does not exist")
	cmd.Flags().StringVar(&f.offset, "offset", "0", "offset of the part to place, such as 1GiB")
	cmd.Flags().StringVar(&f.length, "length", "0", "length of the part to place, such as 1GiB; 0: to the end")
	cmd.Flags().BoolVar(&f.strict, "strict", false, "fail if existing pages are on other nodes; without --move nothing is set then")
	cmd.Flags().BoolVar(&f.move, "move", false, "move existing pages; with CAP_SYS_NICE also those of other processes")
	cmd.Flags().BoolVar(&f.touch, "touch", false, "allocate the missing pages now, by the policy")
}

func given(cmd *cobra.Command, names []string) (out []string) {
	for _, name := range names {
		if cmd.Flags().Changed(name) {
			out = append(out, "--"+name)
		}
	}
	return out
}

func (f segmentFlags) named(cmd *cobra.Command) bool { return len(given(cmd, segmentNames)) > 0 }

func (f segmentFlags) onlyForSegments(cmd *cobra.Command) error {
	if rest := given(cmd, segmentRest); len(rest) > 0 {
		return fmt.Errorf("%s: that is for shared memory: name it with --shm, --shmid or --shmkey", strings.Join(rest, ", "))
	}
	return nil
}

func placeSegment(cmd *cobra.Command, f runFlags, args []string) error {
	if err := cli.CheckOutput(f.output); err != nil {
		return err
	}
	q, err := f.segmentRequest(cmd, args)
	if err != nil {
		return exit.BadInput(err)
	}
	res, err := launch.PlaceSegment(kernel.Live(), q)
	switch {
	case errors.Is(err, launch.ErrElsewhere) && !q.Move:
		return exit.With(exit.Failed, err)
	case errors.Is(err, launch.ErrElsewhere) && q.Strict:
		return exit.With(exit.Partly, err)
	case errors.Is(err, launch.ErrElsewhere):
		cli.Tell(cmd.ErrOrStderr(), []string{err.Error()})
	case err != nil:
		return exit.BadInput(err)
	}
	if f.output == "json" {
		return schema.NewEncoder(cmd.OutOrStdout()).Encode(views.ReportSegment(q, res))
	}
	return views.Segment(cmd.OutOrStdout(), q, res)
}

func (f runFlags) segmentRequest(cmd *cobra.Command, args []string) (q launch.SegmentRequest, err error) {
	switch {
	case len(given(cmd, segmentNames)) > 1:
		return q, errors.New("--shm, --shmid and --shmkey each name shared memory: give one of them")
	case len(args) > 0:
		return q, fmt.Errorf("start %q: a command cannot be combined with shared memory: run it afterwards", args[0])
	case len(given(cmd, []string{"cpus", "needs", "dry-run"})) > 0:
		return q, fmt.Errorf("%s: that is for programs: shared memory has only a policy and nodes", strings.Join(given(cmd, []string{"cpus", "needs", "dry-run"}), ", "))
	case f.Policy == "" && f.Nodes == "":
		return q, errors.New("place shared memory: no policy was given: give --nodes, or --policy local")
	}
	if q.Segment, err = f.segment.segment(cmd); err != nil {
		return q, err
	}
	q.Strict, q.Move, q.Touch = f.segment.strict, f.segment.move, f.segment.touch
	m, _, err := source.Live()
	if err != nil {
		return q, err
	}
	r, _, err := f.Request(m)
	if err != nil {
		return q, err
	}
	if r.Policy == launch.Local && !r.Nodes.IsEmpty() {
		return q, errors.New("policy local takes no --nodes here: it uses the node of the process that touches the page")
	}
	if (q.Strict || q.Move) && r.Nodes.IsEmpty() {
		return q, errors.New("--strict and --move need --nodes")
	}
	limits, err := launch.ReadLimits(kernel.At("/"))
	if err != nil {
		return q, err
	}
	r.AllCPUs = true
	limits.CPUs = set.CPUSet{} // no program runs
	p, err := launch.Resolve(r, m, limits)
	q.Policy, q.Nodes = p.Policy, p.Nodes
	return q, err
}

// segment reads the name and sizes.
func (f segmentFlags) segment(cmd *cobra.Command) (s launch.Segment, err error) {
	for _, size := range []struct {
		name, text string
		into       *unit.Bytes
	}{{"create", f.create, &s.Create}, {"offset", f.offset, &s.Offset}, {"length", f.length, &s.Length}} {
		if size.text == "" {
			continue
		}
		if *size.into, err = unit.ParseBytes(size.text); err != nil {
			return s, fmt.Errorf("--%s: %w", size.name, err)
		}
	}
	switch {
	case cmd.Flags().Changed("shmid"):
		id, err := strconv.ParseInt(f.id, 10, 32)
		if err != nil || id < 0 {
			return s, fmt.Errorf("--shmid %q: want an ID that 'ipcs -m' lists", f.id)
		}
		if s.Create > 0 {
			return s, errors.New("--create with --shmid: the kernel chooses the ID: name the segment with --shmkey")
		}
		s.ID = unit.Some(int(id))
	case cmd.Flags().Changed("shmkey"):
		key, err := strconv.ParseInt(f.key, 0, 64)
		if err != nil || key == 0 || key < math.MinInt32 || key > math.MaxUint32 {
			return s, fmt.Errorf("--shmkey %q: want a key, 0x5432 or decimal; 0 names no segment", f.key)
		}
		s.Key = unit.Some(int(int32(uint32(key))))
	case f.file == "":
		return s, errors.New("--shm is empty: name a file")
	}
	s.File = f.file
	return s, nil
}
