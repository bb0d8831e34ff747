// SPDX-License-Identifier: Apache-2.0

package model

// State is what the model does now.
func (m *Model) State() State { return State(m.word(offApplied).Load()) }
