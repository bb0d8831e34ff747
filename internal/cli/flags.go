// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"homenode/internal/exit"
)

// Exactly requires n arguments; what says what they are.
func Exactly(n int, what string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) != n {
			return exit.BadInput(fmt.Errorf("want %s, got %s", what, arguments(args)))
		}
		return nil
	}
}

// AtLeast requires n arguments or more; what says what they are.
func AtLeast(n int, what string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) < n {
			return exit.BadInput(fmt.Errorf("want %s, got %s", what, arguments(args)))
		}
		return nil
	}
}

// AtMostOne allows an argument; what says what it is.
func AtMostOne(what string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) > 1 {
			return exit.BadInput(fmt.Errorf("want %s or nothing, got %s", what, arguments(args)))
		}
		return nil
	}
}

// arguments says what was given: a word too much is found sooner if it is quoted.
func arguments(args []string) string {
	switch len(args) {
	case 0:
		return "none"
	case 1:
		return fmt.Sprintf("%q", args[0])
	}
	return fmt.Sprintf("%d arguments: %q", len(args), args)
}

// CheckOutput refuses formats that OutputFlag does not offer; more as there.
func CheckOutput(output string, more ...string) error {
	if output != "text" && output != "json" && !slices.Contains(more, output) {
		return exit.BadInput(fmt.Errorf("-o is %q: want %s", output, formats(more)))
	}
	return nil
}

// OutputFlag adds -o; more are the formats that only this command has.
func OutputFlag(cmd *cobra.Command, output *string, more ...string) {
	*output = "text"
	cmd.Flags().VarP(&format{output: output, cmd: cmd, named: "text"}, "output", "o", "output format: "+formats(more))
	must(cmd.RegisterFlagCompletionFunc("output", complete(Fixed(append([]string{"text", "json", "yaml"}, more...)...))))
}

// formats is "text, json or yaml", or "text, json, yaml or markdown".
func formats(more []string) string {
	all := append([]string{"text", "json", "yaml"}, more...)
	return strings.Join(all[:len(all)-1], ", ") + " or " + all[len(all)-1]
}

// Empty refuses flags with an empty value: --only "$PARTS" with an unset variable
// would measure everything.
func Empty(cmd *cobra.Command, names ...string) error {
	for _, name := range names {
		flag := cmd.Flags().Lookup(name)
		if flag.Changed && slices.Contains([]string{"", "[]"}, strings.TrimSpace(flag.Value.String())) {
			return fmt.Errorf("--%s is empty: give it a value, or leave it out", name)
		}
	}
	return nil
}

// wanted is what a flag of a type takes.
var wanted = map[string]string{
	"int": "a whole number", "int64": "a whole number", "uint": "a whole number, 0 or more", "uint64": "a whole number, 0 or more",
	"float64": "a number", "duration": "a time such as 500ms, 30s or 5m", "bool": "true or false",
}

// flagError says what a flag takes where the library quotes the parser of numbers.
func flagError(err error) error {
	var invalid *pflag.InvalidValueError
	if !errors.As(err, &invalid) {
		return err
	}
	want := wanted[invalid.GetFlag().Value.Type()]
	if want == "" {
		return err
	}
	return fmt.Errorf("--%s is %q: want %s", invalid.GetFlag().Name, invalid.GetValue(), want)
}
