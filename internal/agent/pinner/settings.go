// SPDX-License-Identifier: Apache-2.0

package pinner

import (
	"fmt"
	"strings"
	"time"

	"homenode/internal/kernel"
	"homenode/internal/kernel/unix"
	"homenode/internal/policy/brm"
	"homenode/internal/yamlfile"
)

// maxSettings is some ten times what all settings take.
const maxSettings = 16 << 10

// DefaultPeriod is the command's own: the paper's 10 ms costs more than a default should.
const DefaultPeriod = 100 * time.Millisecond

// ReadSettings decodes a file over the defaults; written are the settings that it has.
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

// parseSettings refuses unknown and repeated settings, and what cannot be, with line and
// excerpt.
func parseSettings(data []byte, file string) (brm.Config, map[string]bool, error) {
	cfg := brm.DefaultConfig()
	cfg.Period = DefaultPeriod
	if yamlfile.OnlyComments(data) {
		return cfg, nil, nil
	}
	written := map[string]bool{}
	err := yamlfile.Guard(func() error { return decodeSettings(data, &cfg, written) })
	if err != nil {
		return brm.Config{}, nil, yamlfile.Error(data, file, kernel.ErrMalformed, err)
	}
	return cfg, written, nil
}

func decodeSettings(data []byte, cfg *brm.Config, written map[string]bool) error {
	if len(data) > maxSettings {
		return fmt.Errorf("it has %d bytes: settings take at most %d", len(data), maxSettings)
	}
	return yamlfile.Settings(data, cfg, written, func() (name, what string) {
		if err := cfg.Validate(); err != nil { // "brm: margin is 99: it must be …"
			name, what, _ = strings.Cut(strings.TrimPrefix(err.Error(), "brm: "), " ")
			what = "it " + what
		}
		return name, what
	})
}
