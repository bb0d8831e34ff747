// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"slices"
	"strings"

	"homenode/internal/interference"
	"homenode/internal/policy/vmmap"
	"homenode/internal/render"
)

// Matches says whether a workload's path is the pattern, or of it. "" is any.
func Matches(pattern, id string) bool {
	ok, _ := path.Match(pattern, id)
	return ok || pattern == "" || pattern == id
}

// Calibrate finds a machine's constants from recordings of the five reference loads, each
// "NAME=FILE", in which the load is the workload that matches. whole: none was cut off.
func Calibrate(ctx context.Context, references []string, workload string, stderr *os.File) (f vmmap.Infer, notes []string, whole bool, err error) {
	f, whole = vmmap.DefaultConfig().Infer, true
	var r vmmap.References
	into := map[string]*vmmap.Sample{"rabbit": &r.Rabbit, "devil": &r.Devil, "memory": &r.Memory, "far": &r.Far, "crowded": &r.Crowded}
	const want = "want rabbit, devil, memory, far and crowded, each once, =RECORDING"
	var first *interference.Study
	files := map[string]bool{}
	for _, given := range references {
		name, file, ok := strings.Cut(given, "=")
		to, known := into[name]
		if !ok || !known || file == "" {
			return f, nil, false, fmt.Errorf("--reference is %q: %s", given, want)
		}
		if files[file] {
			return f, nil, false, fmt.Errorf("--reference %s: %s is given twice: each recording is of one load", name, file)
		}
		delete(into, name)
		files[file] = true
		study, cutOff, err := Study(ctx, []string{file}, f, stderr)
		if err != nil {
			return f, nil, false, fmt.Errorf("--reference %s: %w", name, err)
		}
		if first == nil {
			first = study
		}
		notes = append(append(notes, given), cutOff...)
		whole = whole && len(cutOff) == 0
		if *to, err = sample(first, study, workload); err != nil {
			return f, nil, false, fmt.Errorf("--reference %s: %s: %w", name, file, err)
		}
	}
	if len(into) > 0 {
		return f, nil, false, fmt.Errorf("--reference: %s missing: %s", render.List(slices.Sorted(maps.Keys(into))), want)
	}
	f, err = f.Calibrated(r)
	return f, notes, whole, err
}

// sample returns the load's sample, on the machine of the first reference.
func sample(first, study *interference.Study, workload string) (vmmap.Sample, error) {
	if other := first.Another(study.Machine()); other != "" {
		return vmmap.Sample{}, errors.New(other)
	}
	id, err := load(study, workload)
	if err != nil {
		return vmmap.Sample{}, err
	}
	return study.Sample(id)
}

// load returns the workload of a reference's recording that is the load.
func load(s *interference.Study, workload string) (string, error) {
	all := s.IDs()
	ids := slices.DeleteFunc(slices.Clone(all), func(id string) bool { return !Matches(workload, id) })
	if len(ids) != 1 {
		return "", fmt.Errorf("%d of its %d workloads match --workload %q: want one, the load", len(ids), len(all), workload)
	}
	return ids[0], nil
}
