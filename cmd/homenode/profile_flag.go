// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/spf13/cobra"
)

func profileFlag(cmd *cobra.Command, path *string) {
	cmd.Flags().StringVar(path, "profile", "", "profile of this machine, as 'homenode bench' writes it")
}
