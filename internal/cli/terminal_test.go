// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"testing"
)

func TestSpeaksUTF8(t *testing.T) {
	for want, envs := range map[bool][]map[string]string{
		true:  {{"LANG": "de_DE.UTF-8"}, {"LC_ALL": "C.utf8", "LANG": "C"}},
		false: {{}, {"LANG": "C"}, {"LC_ALL": "POSIX", "LANG": "C.UTF-8"}},
	} {
		for _, env := range envs {
			if got := SpeaksUTF8(func(name string) string { return env[name] }); got != want {
				t.Errorf("%v: %v", env, got)
			}
		}
	}
}
