// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"homenode/internal/exit"
	"homenode/internal/schema"
	"homenode/internal/yamlfile"
)

// format is the value of -o. yaml is json whose output is rewritten on its way out, so that
// a command has one machine-readable form, and cannot forget the other one.
type format struct {
	output *string
	cmd    *cobra.Command
	named  string
	writes []any // values of the types that -o json writes
}

// Writes says what a command writes as JSON, by values of these types: the files in schema
// describe it.
func Writes(cmd *cobra.Command, values ...any) *cobra.Command {
	cmd.Flags().Lookup("output").Value.(*format).writes = values
	return cmd
}

// SchemaOf is the JSON Schema of a command's -o json; false: it has none.
func SchemaOf(cmd *cobra.Command) (map[string]any, bool) {
	values := writes(cmd)
	if len(values) == 0 {
		return nil, false
	}
	return schema.Describe(schemaTitle(cmd), values...), true
}

func writes(cmd *cobra.Command) []any {
	if flag := cmd.Flags().Lookup("output"); flag != nil {
		if f, ok := flag.Value.(*format); ok {
			return f.writes
		}
	}
	return nil
}

func schemaTitle(cmd *cobra.Command) string { return cmd.CommandPath() + " -o json" }

// WriteSchemas writes NAME.schema.json for each command that has a schema, and PROGRAM.schema.json
// with the types that they refer to.
func WriteSchemas(root *cobra.Command, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return exit.BadInput(fmt.Errorf("write schemas: %w", err))
	}
	types := schema.NewTypes(SchemaFile(root) + "#/$defs/")
	var failed error
	write := func(cmd *cobra.Command, doc map[string]any) {
		if text, err := json.MarshalIndent(doc, "", "  "); err != nil {
			failed = errors.Join(failed, err)
		} else {
			failed = errors.Join(failed, os.WriteFile(filepath.Join(dir, SchemaFile(cmd)), append(text, '\n'), 0o644))
		}
	}
	walkCommands(root, func(cmd *cobra.Command) {
		if values := writes(cmd); len(values) > 0 {
			write(cmd, types.Document(schemaTitle(cmd), values...))
		}
	})
	write(root, map[string]any{"$schema": schema.Dialect, "title": "types in the output of " + root.Name(), "$defs": types.Known})
	return failed
}

// SchemaFile is the name of a command's schema: homenode-topo.schema.json.
func SchemaFile(cmd *cobra.Command) string {
	return strings.ReplaceAll(cmd.CommandPath(), " ", "-") + ".schema.json"
}

func (f *format) String() string { return f.named }
func (f *format) Type() string   { return "string" }

func (f *format) Set(name string) error {
	f.named, *f.output = name, name
	if name == "yaml" {
		*f.output = "json"
		f.cmd.SetOut(&yamlWriter{out: f.cmd.OutOrStdout()})
	}
	return nil
}

// yamlWriter takes JSON values as an encoder writes them, each with a newline at its end,
// and writes YAML documents.
type yamlWriter struct {
	out   io.Writer
	text  bytes.Buffer
	count int
}

func (y *yamlWriter) Write(p []byte) (int, error) {
	y.text.Write(p)
	if !bytes.HasSuffix(p, []byte("\n")) || !json.Valid(y.text.Bytes()) {
		return len(p), nil
	}
	defer y.text.Reset()
	if y.count++; y.count > 1 {
		if _, err := io.WriteString(y.out, "---\n"); err != nil {
			return 0, err
		}
	}
	return len(p), yamlfile.FromJSON(y.out, y.text.Bytes())
}
