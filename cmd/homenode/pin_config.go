// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"

	"homenode/internal/agent/threadagent"
	"homenode/internal/policy/brm"
)

// settings combines the command line and the file. If both have a setting, it must be
// the same.
func (o pinOptions) settings(given func(flag string) bool) (brm.Config, error) {
	cfg, written, err := threadagent.ReadSettings(o.config)
	if err != nil {
		return brm.Config{}, err
	}
	var errs [3]error
	cfg.Period, errs[0] = sayOnce("period", o.config, given, written, o.period, cfg.Period)
	cfg.Hold, errs[1] = sayOnce("hold", o.config, given, written, o.hold, cfg.Hold)
	cfg.Infer, errs[2] = sayOnce("infer", o.config, given, written, o.infer, cfg.Infer)
	if err := errors.Join(errs[:]...); err != nil {
		return brm.Config{}, err
	}
	return cfg, cfg.Validate()
}

// sayOnce returns the file's value, unless the flag was given.
func sayOnce[T comparable](name, file string, given func(flag string) bool, written map[string]bool, ofFlag, ofFile T) (T, error) {
	switch {
	case !written[name]:
		return ofFlag, nil
	case given(name) && ofFlag != ofFile:
		return ofFlag, fmt.Errorf("--%s %v: %s says %s: %v: say it once", name, ofFlag, file, name, ofFile)
	}
	return ofFile, nil
}
