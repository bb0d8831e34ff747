// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"

	"homenode/internal/machine"
	"homenode/internal/profile"
	"homenode/internal/sim"

	"homenode/internal/sim/catalog"
	"homenode/internal/sim/linux"
	"homenode/internal/sim/memsys"
	"homenode/internal/sim/runner"
)

// Files are the files that a scenario names. The caller has the file system, and opens them
// relative to the scenario.
type Files interface {
	ReadFile(name string) ([]byte, error)
	Tree(name string) (fs.FS, error)
}

// Setting is a scenario with its machine: all that a run needs.
type Setting struct {
	Scenario
	Digest  string // digest of the scenario's text
	Host    machine.Machine
	System  memsys.System
	Profile *profile.Profile // nil: none
}

// Load reads a scenario and the files that it names, and checks that a world can be made of
// it. Its errors have Parse's form: file, line, reason, whichever file is at fault; or they
// are the context's.
func Load(ctx context.Context, data []byte, file string, files Files) (Setting, error) {
	s, doc, err := parse(data, file)
	if err != nil {
		return Setting{}, err
	}
	sum := sha256.Sum256(data)
	set := Setting{Scenario: s, Digest: hex.EncodeToString(sum[:])}
	if path, err := set.load(files); err != nil {
		return Setting{}, doc.Wrong(path, err.Error())
	}
	if set.Host.NodesWithMemory().IsEmpty() {
		return Setting{}, doc.Wrong("machine", "no node of it has memory")
	}
	if all := specProblems(s.Workloads, set.Host); len(all) > 0 {
		return Setting{}, allErrors(doc, all)
	}
	if i, err := set.tryWorlds(ctx); i >= 0 {
		return Setting{}, doc.Wrong(fmt.Sprintf("arms[%d]", i), err.Error())
	} else if err != nil {
		return Setting{}, err
	}
	return set, nil
}

// tryWorlds makes a world of each kind, to check that this is possible: arms differ in
// Linux's settings and in how workloads start. It also returns the arm that an error
// belongs to; -1: to none.
func (s *Setting) tryWorlds(ctx context.Context) (int, error) {
	type kind struct {
		linux      linux.Settings
		interleave bool
	}
	seen := map[kind]bool{}
	for i, a := range s.Arms {
		if err := ctx.Err(); err != nil {
			return -1, err
		}
		c := s.world(a, s.Seeds[0])
		if k := (kind{c.Linux, c.Interleave}); seen[k] {
			continue
		} else {
			seen[k] = true
		}
		if _, err := sim.NewWorld(c); err != nil {
			return i, err
		}
	}
	return -1, nil
}

// load also returns the path in the scenario that an error belongs to.
func (s *Setting) load(files Files) (string, error) {
	if name := s.Scenario.Machine.Profile; name != "" {
		p, err := readProfile(files, name)
		if err != nil {
			return "machine.profile", err
		}
		s.Profile = &p
		s.Actuate.Profile = &p
	}
	switch m := s.Scenario.Machine; {
	case m.Shape != "":
		return s.shape(files, m.Shape)
	case m.Tree != "":
		return s.tree(files, m.Tree)
	default:
		return s.builtin(m.Builtin)
	}
}

func readProfile(files Files, name string) (profile.Profile, error) {
	data, err := files.ReadFile(name)
	if err != nil {
		return profile.Profile{}, err
	}
	p, err := profile.Decode(data)
	if err != nil {
		return profile.Profile{}, fmt.Errorf("%s: %w", name, err)
	}
	return p, nil
}

func (s *Setting) shape(files Files, name string) (string, error) {
	data, err := files.ReadFile(name)
	if err != nil {
		return "machine.shape", err
	}
	shape, err := machine.ParseShape(data, name)
	if err != nil {
		return "machine.shape", err
	}
	s.Host = shape.Machine()
	if s.Profile != nil {
		return s.measured("machine.shape")
	}
	s.System = memsys.FromShape(shape)
	return "", nil
}

func (s *Setting) tree(files Files, name string) (string, error) {
	tree, err := files.Tree(name)
	if err != nil {
		return "machine.tree", err
	}
	s.Host, err = machine.ParseSysfs(tree, "recorded:"+name)
	if len(s.Host.CPUs) == 0 || len(s.Host.Nodes) == 0 { // otherwise what it describes is enough
		return "machine.tree", fmt.Errorf("%s: %w", name, errors.Join(errors.New("it describes no CPU or no node"), err))
	}
	return s.measured("machine.tree")
}

// measured makes the system from the machine and its profile, if there is one.
func (s *Setting) measured(path string) (string, error) {
	if s.Profile != nil {
		path = "machine.profile"
		if why := s.Profile.Machine.Differs(profile.FingerprintOf(s.Host, "")); why != "" {
			return path, fmt.Errorf("%s is of another machine: %s", s.Scenario.Machine.Profile, why)
		}
	}
	var err error
	s.System, err = memsys.FromMachine(s.Host, s.Profile)
	return path, err
}

func (s *Setting) builtin(name string) (string, error) {
	if b, ok := catalog.MachineNamed(name); ok {
		s.Host, s.System = b.Make()
	}
	if s.Profile != nil {
		return s.measured("machine.builtin")
	}
	return "", nil
}

// world is an arm's world before its first step.
func (s *Setting) world(a Arm, seed uint64) sim.Config {
	c := sim.Config{
		Machine: s.Host, System: s.System, Linux: s.linuxOf(a), Specs: s.Workloads, Seed: seed, Start: runner.Start.Add(s.Clock), Step: s.Step,
	}
	runner.Prepare(a.Policy, &c)
	return c
}

func (s *Setting) linuxOf(a Arm) linux.Settings {
	l := s.Linux
	if a.NUMABalancing != nil {
		l.NUMABalancing = *a.NUMABalancing
	}
	return l
}
