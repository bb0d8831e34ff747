// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// everyExit are the codes that every command has.
var everyExit = map[string]string{"0": "done", "1": "failed", "2": "bad input, or something that must be there is not: nothing was changed"}

// exitPrefix is before a code in a command's annotations.
const exitPrefix = "exit "

// AnyExit is the code of a command that ends with another program's.
const AnyExit = "any"

// Exits says when a command ends with codes beyond those of every command, or what one of
// those means here: pairs of a code and its meaning. Help and reference show it.
func Exits(cmd *cobra.Command, pairs ...string) *cobra.Command {
	if cmd.Annotations == nil {
		cmd.Annotations = map[string]string{}
	}
	if cmd.Long == "" {
		cmd.Long = cmd.Short + "."
	}
	cmd.Long += "\n\nExit codes:"
	for pair := range slices.Chunk(pairs, 2) {
		cmd.Annotations[exitPrefix+pair[0]] = pair[1]
		cmd.Long += fmt.Sprintf("\n  %-3s  %s", pair[0], pair[1])
	}
	return cmd
}

// Documented says whether a command's documents have an exit code.
func Documented(cmd *cobra.Command, code int) bool {
	text := fmt.Sprint(code)
	_, any := cmd.Annotations[exitPrefix+AnyExit]
	_, own := cmd.Annotations[exitPrefix+text]
	return any || own || everyExit[text] != ""
}

// ExitTable writes the codes of all commands that have their own.
func ExitTable(w io.Writer, root *cobra.Command) {
	fmt.Fprintf(w, "| `%s` | code | meaning |\n|---|---|---|\n", root.Name())
	fmt.Fprintf(w, "| every command | 0 | %s |\n| | 1 | %s |\n| | 2 | %s |\n", everyExit["0"], everyExit["1"], everyExit["2"])
	walkCommands(root, func(cmd *cobra.Command) {
		name := "`" + strings.TrimPrefix(cmd.CommandPath(), root.Name()+" ") + "`"
		for _, key := range slices.Sorted(maps.Keys(cmd.Annotations)) {
			if code, ok := strings.CutPrefix(key, exitPrefix); ok {
				fmt.Fprintf(w, "| %s | %s | %s |\n", name, code, cmd.Annotations[key])
				name = ""
			}
		}
	})
}

func walkCommands(cmd *cobra.Command, visit func(*cobra.Command)) {
	visit(cmd)
	for _, sub := range cmd.Commands() {
		walkCommands(sub, visit)
	}
}
