// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"encoding/json"
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
	flag := cmd.Flags().Lookup("output")
	if flag == nil {
		return nil, false
	}
	f, ok := flag.Value.(*format)
	if !ok || len(f.writes) == 0 {
		return nil, false
	}
	return schema.Describe(cmd.CommandPath()+" -o json", f.writes...), true
}

// WriteSchemas writes NAME.schema.json for each command that has a schema.
func WriteSchemas(root *cobra.Command, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return exit.BadInput(fmt.Errorf("write schemas: %w", err))
	}
	var failed error
	walkCommands(root, func(cmd *cobra.Command) {
		doc, ok := SchemaOf(cmd)
		if !ok || failed != nil {
			return
		}
		text, err := json.MarshalIndent(doc, "", "  ")
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, SchemaFile(cmd)), append(text, '\n'), 0o644)
		}
		failed = err
	})
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
