// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"encoding/json"
	"io"

	"github.com/spf13/cobra"

	"homenode/internal/yamlfile"
)

// format is the value of -o. yaml is json whose output is rewritten on its way out, so that
// a command has one machine-readable form, and cannot forget the other one.
type format struct {
	output *string
	cmd    *cobra.Command
	named  string
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
