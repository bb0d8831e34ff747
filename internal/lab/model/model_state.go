// SPDX-License-Identifier: Apache-2.0

package model

// State is the present state of the model.
func (m *Model) State() State { return State(m.word(offApplied).Load()) }
