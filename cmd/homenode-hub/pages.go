// SPDX-License-Identifier: Apache-2.0

package main

import (
	"net/http"

	"github.com/spf13/cobra"

	"homenode/internal/hub"
	"homenode/internal/store"
)

// addQuestions adds the commands that ask the hub.
func addQuestions(*cobra.Command) {}

// addPages adds what people see to what the hub serves.
func addPages(*http.ServeMux, *hub.Server, store.Store) error { return nil }
