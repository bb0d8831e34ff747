// SPDX-License-Identifier: Apache-2.0

package threadagent

import (
	"fmt"
	"strings"
	"time"

	"homenode/internal/kernel"
	"homenode/internal/kernel/unix"
	"homenode/internal/policy/brm"
	"homenode/internal/yamlfile"
)

// maxSettings is some ten times the size of a file with all settings, bytes.
const maxSettings = 16 << 10

// DefaultPeriod is the command's own default: the paper's 10 ms would cost too much as a
// default.
const DefaultPeriod = 100 * time.Millisecond

// ReadSettings decodes a file over the defaults. written has the settings that the
// file names.
func ReadSettings(file string) (cfg brm.Config, written map[string]bool, err error) {
	if file == "" {
		return parseSettings(nil, file)
	}
	data, err := unix.ReadAtMost(file, maxSettings)
	if err != nil {
		return brm.Config{}, nil, fmt.Errorf("read configuration: %w", err)
	}
	return parseSettings(data, file)
}

// parseSettings refuses unknown, repeated and impossible settings, with line and
// excerpt.
func parseSettings(data []byte, file string) (brm.Config, map[string]bool, error) {
	doc, err := yamlfile.Parse(data, file, yamlfile.Rules{Malformed: kernel.ErrMalformed, What: "a file of settings", Most: maxSettings, MayBeEmpty: true})
	if err != nil {
		return brm.Config{}, nil, err
	}
	cfg := brm.DefaultConfig()
	cfg.Period = DefaultPeriod
	if err := doc.Decode(&cfg); err != nil {
		return brm.Config{}, nil, err
	}
	if doc.Empty() {
		return cfg, nil, nil
	}
	if err := cfg.Validate(); err != nil { // "brm: margin is 99: it must be …"
		name, what, _ := strings.Cut(strings.TrimPrefix(err.Error(), "brm: "), " ")
		return brm.Config{}, nil, doc.Wrong(name, "it "+what)
	}
	return cfg, doc.Written(), nil
}
