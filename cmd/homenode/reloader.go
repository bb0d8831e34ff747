// SPDX-License-Identifier: Apache-2.0

package main

import (
	"homenode/internal/agent"
)

// reloader reads the agent's configuration again. It is nil if there is no file.
func reloader(file, state string) func() (agent.Config, error) {
	if file == "" {
		return nil
	}
	return func() (agent.Config, error) {
		c, err := agentConfig(file, state)
		if err == nil {
			err = useProfile(&c)
		}
		return c, err
	}
}
