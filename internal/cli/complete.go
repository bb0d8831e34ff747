// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// Values lists what a flag or an argument may be, for a shell's completion. It is asked
// while a person types: what cannot be read is left out.
type Values func() []string

// Fixed are values that are always the same.
func Fixed(values ...string) Values { return func() []string { return values } }

// CompleteFlags has the flags of a command, and of all below it, completed by their names.
func CompleteFlags(root *cobra.Command, flags map[string]Values) {
	for name, values := range flags {
		if root.LocalFlags().Lookup(name) != nil {
			must(root.RegisterFlagCompletionFunc(name, complete(values)))
		}
	}
	for _, cmd := range root.Commands() {
		CompleteFlags(cmd, flags)
	}
}

// CompleteArgument completes a command's only argument.
func CompleteArgument(cmd *cobra.Command, values Values) *cobra.Command {
	cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return complete(values)(cmd, args, typed)
	}
	return cmd
}

type completion = func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective)

// complete completes the last part of a list: "0,1" goes on from 0.
func complete(values Values) completion {
	return func(_ *cobra.Command, _ []string, typed string) (found []string, _ cobra.ShellCompDirective) {
		before := typed[:strings.LastIndexByte(typed, ',')+1]
		said := strings.Split(before, ",")
		for _, v := range values() {
			if strings.HasPrefix(before+v, typed) && !slices.Contains(said, v) {
				found = append(found, before+v)
			}
		}
		return found, cobra.ShellCompDirectiveNoFileComp
	}
}

// must is for what only a mistake in a program breaks.
func must(err error) {
	if err != nil {
		panic(err)
	}
}
