// SPDX-License-Identifier: Apache-2.0

package clitest

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/spf13/cobra"

	"homenode/internal/cli"
)

// fitsSchema compares what a command has printed with the schema of its output, if it was
// asked for JSON. Every test of a command line is such a test.
func fitsSchema(cmd *cobra.Command, out string) error {
	flag := cmd.Flags().Lookup("output")
	if flag == nil || flag.Value.String() != "json" || out == "" {
		return nil
	}
	form, ok := cli.SchemaOf(cmd)
	if !ok {
		return nil
	}
	check, err := compiled(form)
	if err != nil {
		return err
	}
	for d := json.NewDecoder(strings.NewReader(out)); d.More(); {
		var raw json.RawMessage
		if err := d.Decode(&raw); err != nil {
			return err
		}
		value, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
		if err == nil {
			err = check.Validate(value)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func compiled(form map[string]any) (*jsonschema.Schema, error) {
	text, err := json.Marshal(form)
	if err != nil {
		return nil, err
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("form.json", doc); err != nil {
		return nil, err
	}
	return c.Compile("form.json")
}
