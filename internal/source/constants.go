// SPDX-License-Identifier: Apache-2.0

package source

import (
	"fmt"
	"strings"

	"homenode/internal/kernel"
	"homenode/internal/kernel/unix"
	"homenode/internal/policy/animal"
	"homenode/internal/yamlfile"
)

// MaxConstants is some ten times what all constants take.
const MaxConstants = 16 << 10

// ofMachine are the constants that Calibrated finds.
var ofMachine = []string{"dram", "remote", "devil_rate", "rabbit_rate", "crowd"}

// Constants decodes a file over the defaults; what is unknown, or cannot be, is refused
// with its line. missing are those of the machine that it has not.
func Constants(file string) (f animal.Infer, missing []string, err error) {
	f = animal.DefaultConfig().Infer
	data, err := unix.ReadAtMost(file, MaxConstants)
	switch {
	case err != nil:
		return f, nil, fmt.Errorf("read constants: %w", err)
	case yamlfile.OnlyComments(data):
		return f, nil, fmt.Errorf("read constants: %s has none: 'homenode classes --reference' prints some", file)
	}
	written := map[string]bool{}
	if err := yamlfile.Guard(func() error { return decodeConstants(data, &f, written) }); err != nil {
		return f, nil, yamlfile.Error(data, file, kernel.ErrMalformed, err)
	}
	for _, name := range ofMachine {
		if !written[name] {
			missing = append(missing, name)
		}
	}
	return f, missing, nil
}

func decodeConstants(data []byte, f *animal.Infer, written map[string]bool) error {
	return yamlfile.Settings(data, f, written, func() (name, what string) {
		cfg := animal.DefaultConfig()
		cfg.Infer = *f
		if err := cfg.Validate(); err != nil { // "animal: infer.dram: it must be …"
			name, what, _ = strings.Cut(strings.TrimPrefix(err.Error(), "animal: infer."), " ")
		}
		return strings.TrimSuffix(name, ":"), what
	})
}
