// SPDX-License-Identifier: Apache-2.0

package threadagent

import (
	"errors"
	"strings"
	"testing"
	"time"

	"homenode/internal/kernel"
	"homenode/internal/kernel/unix"
	"homenode/internal/policy/brm"
)

func TestBRMConfig(t *testing.T) {
	cfg, written, err := parseSettings([]byte("scope: system\nforget: 1m\nmargin: 0.1\n"), "x.yaml")
	if err != nil || cfg.Scope != brm.ScopeSystem || cfg.Forget != time.Minute || cfg.Margin != 0.1 || cfg.Settle != brm.DefaultConfig().Settle || cfg.Period != DefaultPeriod {
		t.Errorf("%+v, %v", cfg, err)
	}
	if len(written) != 3 || !written["forget"] {
		t.Errorf("%v", written)
	}
	for _, text := range []string{"", "\n# scope: system\n\n"} {
		want := brm.DefaultConfig()
		want.Period = DefaultPeriod
		if cfg, _, err := parseSettings([]byte(text), "x.yaml"); err != nil || cfg != want {
			t.Errorf("%q: %+v, %v", text, cfg, err)
		}
	}
}

func TestBRMConfigIsRefused(t *testing.T) {
	for text, want := range map[string]string{
		"scope: system\n---\nscope: galaxy\n": "exactly one YAML document",
		"seed: 1\nmargin: 99\n":               "parse x: line 2: malformed: margin: it is 99: it must be between 0 and 10\n    2 | margin: 99",
		"seed: 1\nscope: galaxy\n":            "line 2: malformed: scope: it is \"galaxy\"",
		"seed: 1\ninfer: [1]\n":               "parse x: line 2: malformed: infer: it is a list: want true or false\n    2 | infer: [1]",
		"settle: 4.7\n":                       "line 1: malformed: settle: it is 4.7: want a whole number",
		"settle: \"4\"\n":                     "line 1: malformed: settle: it is \"4\": want a whole number",
		"period: 100\n":                       "line 1: malformed: period: it is 100: want a duration with its unit, such as 90s",
		"margin: much\n":                      "line 1: malformed: margin: it is \"much\": want a number",
		"seed: 1\nmargins: 1\n":               "line 2: malformed: unknown field \"margins\"",
		"seed: 1\nseed: 1\n":                  "line 2: malformed: ",
		"- 1\n":                               "line 1: malformed: it is a list: want settings",
		"margin: !":                           "malformed: ",
		strings.Repeat("# more\n", 1<<12) + "seed: 1\n": "a file of settings has at most",
	} {
		cfg, _, err := parseSettings([]byte(text), "x")
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "Go ") || cfg != (brm.Config{}) || !errors.Is(err, kernel.ErrMalformed) {
			t.Errorf("%.40q: %v, want %q", text, err, want)
		}
	}
}

// A file that is too long for settings is not read to its end.
func TestSettingsAreBounded(t *testing.T) {
	if cfg, _, err := ReadSettings("/dev/zero"); !errors.Is(err, unix.ErrTooLarge) || cfg != (brm.Config{}) {
		t.Errorf("%+v, %v", cfg, err)
	}
}

func FuzzBRMConfig(f *testing.F) {
	for _, s := range []string{"", "scope: system\n", "margin: !", "forget: 1h\nseed: 3", "a: &x [*x]", "? [a]\n: 1", "&a margin: 1", "<<: {margin: 1}", "margin: &x 1\nchange: *x"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		cfg, _, err := parseSettings(data, "x")
		if err != nil && cfg != (brm.Config{}) || err == nil && cfg.Validate() != nil {
			t.Errorf("%v with %+v", err, cfg)
		}
	})
}
