// SPDX-License-Identifier: Apache-2.0

package source

import (
	"fmt"

	"homenode/internal/kernel/unix"
	"homenode/internal/model"
)

// Model reads a model of placements.
func Model(path string) (model.Model, error) {
	data, err := unix.ReadAtMost(path, model.MaxBytes)
	if err != nil {
		return model.Model{}, fmt.Errorf("read model: %w", err)
	}
	m, err := model.Decode(data)
	if err != nil {
		return model.Model{}, Explain(path, fmt.Errorf("%s: %w", path, err))
	}
	return m, nil
}
