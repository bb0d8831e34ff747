// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"testing"

	"github.com/spf13/cobra"

	"homenode/internal/schema"
)

// -o yaml prints what -o json prints, a document for each value.
func TestYAMLIsTheJSON(t *testing.T) {
	for args, want := range map[string]string{
		"json": "{\"schema\":1,\"names\":[],\"x\":\"a\\u009bb\"}\n{\"schema\":1,\"names\":[],\"x\":\"a\\u009bb\"}\n",
		"yaml": "schema: 1\nnames: []\nx: \"a\\x9Bb\"\n---\nschema: 1\nnames: []\nx: \"a\\x9Bb\"\n",
	} {
		var output string
		var out bytes.Buffer
		cmd := &cobra.Command{RunE: func(cmd *cobra.Command, _ []string) error {
			if err := CheckOutput(output); err != nil {
				return err
			}
			for range 2 {
				if err := schema.NewEncoder(cmd.OutOrStdout()).Encode(struct {
					Schema int      `json:"schema"`
					Names  []string `json:"names"`
					X      string   `json:"x"`
				}{1, []string{}, "a\u009bb"}); err != nil {
					return err
				}
			}
			return nil
		}}
		OutputFlag(cmd, &output)
		cmd.SetOut(&out)
		cmd.SetArgs([]string{"-o", args})
		if err := cmd.Execute(); err != nil || output != "json" || out.String() != want {
			t.Errorf("%s: %v, %q:\n%s\nwant\n%s", args, err, output, out.String(), want)
		}
	}
}
