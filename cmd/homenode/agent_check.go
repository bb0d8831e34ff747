// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io/fs"

	"homenode/internal/views"

	"github.com/spf13/cobra"

	"homenode/internal/agent"
	"homenode/internal/cli"
	"homenode/internal/exit"
	"homenode/internal/kernel"
	"homenode/internal/schema"
	"homenode/internal/source"
)

// packagedConfig is the configuration that the package installs, and the unit reads.
const packagedConfig = "/etc/homenode/agent.yaml"

// checkConfig is 'agent --check'. Without --config it checks the packaged file if that is
// there, else the defaults.
func checkConfig(cmd *cobra.Command, file, state, output string) error {
	if err := cli.CheckOutput(output); err != nil {
		return err
	}
	file = packagedOr(file)
	layers, err := agent.ReadLayers(file, ownState(file, state))
	if err != nil {
		return exit.BadInput(err)
	}
	c := agent.CheckLayers(agent.CheckHost{Workloads: workloadsOf, Group: groupExists, Profile: profileFits}, layers...)
	if output == "json" {
		err = schema.NewEncoder(cmd.OutOrStdout()).Encode(c)
	} else {
		err = views.Check(cmd.OutOrStdout(), cli.Screen(), c)
	}
	if err == nil && !c.OK() {
		err = exit.With(exit.Bad, nil)
	}
	return err
}

func workloadsOf(globs []string) ([]string, error) {
	return kernel.WorkloadsIn(kernel.At("/"), globs)
}

func groupExists(name string) error {
	_, err := agent.GroupID(name)
	return err
}

func profileFits(file string) error {
	m, _, err := source.Live()
	if err == nil {
		_, err = source.Profile(file, m, source.LiveCPUModel())
	}
	return short(err)
}

// short leaves out the operation of a missing file: the key says what the file is.
func short(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) && errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("there is no file %s", p.Path)
	}
	return err
}
