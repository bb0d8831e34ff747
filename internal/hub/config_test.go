// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"fmt"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"
)

// The packaged file starts as it is and lets no other host in. It names every key, and its
// commented settings are the defaults.
func TestPackagedConfig(t *testing.T) {
	text, err := os.ReadFile("../../deploy/etc/hub.yaml")
	if err != nil {
		t.Fatal(err)
	}
	c, err := ParseConfig(text, "hub.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(c.Listen, "127.0.0.1:") || !strings.HasPrefix(c.Page, "127.0.0.1:") {
		t.Errorf("it is open to other hosts: %s, %s", c.Listen, c.Page)
	}
	_, settings, _ := strings.Cut(string(text), "\n\n") // what is above is about the file
	all := regexp.MustCompile(`(?m)^#((?:  )*)([a-z])`).ReplaceAllString(settings, "$1$2")
	got, err := ParseConfig([]byte(all), "hub.yaml, all settings")
	if err != nil {
		t.Fatal(err)
	}
	want := DefaultConfig()
	want.Names, want.Listen = c.Names, c.Listen
	if fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", want) {
		t.Errorf("a commented setting is not the default:\n got %+v\nwant %+v", got, want)
	}
	if want := fmt.Sprintf("# TCP address for agents. They need a certificate of this hub's authority. Default: %q.", DefaultConfig().Listen); !strings.Contains(settings, want) {
		t.Errorf("it does not say %q", want)
	}
	keys(t, reflect.TypeFor[Config](), "", all)
}

func keys(t *testing.T, of reflect.Type, indent, text string) {
	t.Helper()
	for i := range of.NumField() {
		name := of.Field(i).Tag.Get("yaml")
		if !regexp.MustCompile(`(?m)^` + indent + name + `:`).MatchString(text) {
			t.Errorf("it has no key %q", name)
		}
		if below := of.Field(i).Type; below.Kind() == reflect.Struct {
			keys(t, below, indent+"  ", text)
		}
	}
}

// What dev writes is read as what it meant, whatever its folder is called.
func TestMinimalConfig(t *testing.T) {
	c := DefaultConfig()
	c.Names, c.Page, c.Authority = []string{"localhost", "::1"}, "", "/tmp/it's \"a\" #folder: ü/authority"
	got, err := ParseConfig(c.Minimal(), "hub.yaml")
	if err != nil || fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", c) {
		t.Errorf("%v\n got %+v\nwant %+v", err, got, c)
	}
}
