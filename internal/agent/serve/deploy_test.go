// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

// The plugin of sos is Python that compiles, and has what sos asks of a plugin.
func TestSosPlugin(t *testing.T) {
	const file = "../../../deploy/sos/homenode.py"
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"class Homenode(Plugin, IndependentPlugin):", "def setup(self):", `plugin_name = "homenode"`, "short_desc = "} {
		if !strings.Contains(string(text), want) {
			t.Errorf("no %q", want)
		}
	}
	if regexp.MustCompile(`homenode (agent|run|migrate|pin|freeze|restore -o)`).Match(text) {
		t.Error("it runs a command that changes something")
	}
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("no python3 to compile it with")
	}
	out, err := exec.Command(python, "-c", "import ast, sys; ast.parse(open(sys.argv[1]).read())", file).CombinedOutput()
	if err != nil {
		t.Errorf("%v: %s", err, out)
	}
}
