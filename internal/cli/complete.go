// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// Values lists the possible values of a flag or an argument, for a shell's completion.
// It is called while a person types, so what cannot be read is left out.
type Values func() []string

// Fixed are values that are always the same.
func Fixed(values ...string) Values { return func() []string { return values } }

// CompleteFlags completes the flags of a command and of all commands below it, by their
// names.
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

// complete completes the last part of a list: after "0,1" it continues from
// "0,".
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

// must is for errors that only a bug in the program can cause.
func must(err error) {
	if err != nil {
		panic(err)
	}
}
