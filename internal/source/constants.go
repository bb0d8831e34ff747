// SPDX-License-Identifier: Apache-2.0

package source

import (
	"fmt"
	"strings"

	"homenode/internal/kernel"
	"homenode/internal/kernel/unix"
	"homenode/internal/policy/vmmap"
	"homenode/internal/yamlfile"
)

// MaxConstants is some ten times what all constants take.
const MaxConstants = 16 << 10

// ofMachine are the constants that Calibrated finds.
var ofMachine = []string{"dram", "remote", "devil_rate", "rabbit_rate", "crowd"}

// Constants decodes a file over the defaults; what is unknown, or cannot be, is refused
// with its line. missing are those of the machine that it has not.
func Constants(file string) (f vmmap.Infer, missing []string, err error) {
	defaults := vmmap.DefaultConfig().Infer
	data, err := unix.ReadAtMost(file, MaxConstants)
	if err != nil {
		return defaults, nil, fmt.Errorf("read constants: %w", err)
	}
	doc, err := yamlfile.Parse(data, file, yamlfile.Rules{Malformed: kernel.ErrMalformed, What: "a file of constants", Most: MaxConstants, MayBeEmpty: true})
	switch {
	case err != nil:
		return defaults, nil, err
	case doc.Empty():
		return defaults, nil, fmt.Errorf("read constants: %s has none: 'homenode classes --reference' prints some", file)
	}
	if f, err = decodeConstants(doc); err != nil {
		return f, nil, err
	}
	for _, name := range ofMachine {
		if !doc.Wrote(name) {
			missing = append(missing, name)
		}
	}
	return f, missing, nil
}

func decodeConstants(doc *yamlfile.Document) (vmmap.Infer, error) {
	cfg := vmmap.DefaultConfig()
	if err := doc.Decode(&cfg.Infer); err != nil {
		return cfg.Infer, err
	}
	if err := cfg.Validate(); err != nil { // "animal: infer.dram: it must be …"
		name, what, _ := strings.Cut(strings.TrimPrefix(err.Error(), "animal: infer."), " ")
		return cfg.Infer, doc.Wrong(strings.TrimSuffix(name, ":"), what)
	}
	return cfg.Infer, nil
}
