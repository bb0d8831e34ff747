// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"homenode/internal/golden"
	"homenode/internal/render"
	"homenode/internal/set"
	"homenode/internal/unit"
)

// key is a key of the configuration, as the reference and the packaged file show it.
type key struct {
	path     string // services[].name
	name     string
	depth    int
	doc      string
	kind     reflect.Type
	value    reflect.Value // default; invalid: none
	restart  bool
	children bool
}

// configKeys reads keys and defaults from the structs, and texts from their comments.
func configKeys(t *testing.T) []key {
	t.Helper()
	c := commentsOf{t, map[string]map[string]map[string]string{}}
	return c.keys(reflect.ValueOf(defaultFile()), "", 0)
}

type commentsOf struct {
	t    *testing.T
	read map[string]map[string]map[string]string // package, type, field
}

func (c commentsOf) keys(v reflect.Value, at string, depth int) (all []key) {
	for i := range v.NumField() {
		f := v.Type().Field(i)
		name, option, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		if option == "inline" {
			all = append(all, c.keys(v.Field(i), at, depth)...)
			continue
		}
		if name == "" || name == "-" {
			continue
		}
		k := key{path: strings.TrimPrefix(at+"."+name, "."), name: name, depth: depth, doc: c.doc(v.Type(), f.Name, name), kind: f.Type, value: v.Field(i)}
		k.restart = restarts(k.path)
		below := reflect.Value{}
		switch {
		case f.Type.Kind() == reflect.Struct && f.Type.NumField() > 0 && f.Type != reflect.TypeFor[set.CPUSet]():
			below = v.Field(i)
		case f.Type == reflect.TypeFor[[]fileService]():
			below, k.path = reflect.ValueOf(fileService{}), k.path+"[]"
		}
		k.children = below.IsValid()
		all = append(all, k)
		if k.children {
			all = append(all, c.keys(below, k.path, depth+1)...)
		}
	}
	return all
}

// restarts says whether a change of a key needs a restart, as reload has it.
func restarts(path string) bool {
	best, restart := -1, false
	for _, s := range settings {
		name := strings.ReplaceAll(s.name, ": ", ".")
		if (path == name || strings.HasPrefix(path, name)) && len(name) > best {
			best, restart = len(name), s.restart
		}
	}
	return restart
}

// doc is the comment behind a field, else the one above it.
func (c commentsOf) doc(t reflect.Type, field, name string) string {
	fields := c.file(t.PkgPath())
	text := strings.Join(strings.Fields(fields[t.Name()][field]), " ")
	if rest, ok := strings.CutPrefix(text, field+" "); ok && beginsWithVerb.MatchString(rest) {
		text = name + " " + rest
	}
	if text == "" {
		c.t.Errorf("%s.%s, the key %s, has no comment: the reference is written from it", t, field, name)
	}
	return text
}

// beginsWithVerb is the rest of a comment such as "ForgetAfter is the number of …".
var beginsWithVerb = regexp.MustCompile(`^(is|are|bounds|says) `)

func (c commentsOf) file(pkg string) map[string]map[string]string {
	if c.read[pkg] != nil {
		return c.read[pkg]
	}
	all := map[string]map[string]string{}
	files, err := filepath.Glob(filepath.Join("../..", strings.TrimPrefix(pkg, "homenode/"), "*.go"))
	if err != nil || len(files) == 0 {
		c.t.Fatalf("%s: %v", pkg, err)
	}
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
		if err != nil {
			c.t.Fatal(err)
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			if s, ok := n.(*ast.TypeSpec); ok {
				if st, ok := s.Type.(*ast.StructType); ok {
					all[s.Name.Name] = fieldComments(st)
				}
			}
			return true
		})
	}
	c.read[pkg] = all
	return all
}

func fieldComments(st *ast.StructType) map[string]string {
	all := map[string]string{}
	for _, f := range st.Fields.List {
		text := f.Comment.Text()
		if text == "" {
			text = f.Doc.Text()
		}
		for _, n := range f.Names {
			all[n.Name] = text
		}
	}
	return all
}

// typeOf is the type and the unit of a key.
func (k key) typeOf() (kind, of string) {
	switch t := k.kind; {
	case k.children && t.Kind() == reflect.Slice:
		return "list", ""
	case k.children:
		return "group", ""
	case t == reflect.TypeFor[time.Duration]():
		return "duration", "ms, s, m, h"
	case t == reflect.TypeFor[unit.Bytes]():
		return "size", "KiB, MiB, GiB"
	case t == reflect.TypeFor[unit.Ratio]() || k.name == "target_local_ratio":
		return "number", "share, 0 to 1"
	case t == reflect.TypeFor[set.CPUSet]() || k.name == "reserved_cpus":
		return "CPU list", "0-3,8"
	case t.Kind() == reflect.Map:
		return "map", "node: bytes/s"
	case t.Kind() == reflect.Slice:
		return "list", ""
	case t.Kind() == reflect.Bool:
		return "true or false", ""
	case t.Kind() == reflect.String:
		return "text", ""
	case t.Kind() == reflect.Float64:
		return "number", ""
	}
	if strings.HasSuffix(k.name, "_windows") || strings.HasSuffix(k.name, "_after") {
		return "whole number", "windows"
	}
	return "whole number", ""
}

var zeros = regexp.MustCompile(`([hm])0[ms](0s)?$`)

// yaml is the default as a file has it.
func (k key) yaml() string {
	v := k.value
	switch x := v.Interface().(type) {
	case time.Duration:
		return zeros.ReplaceAllString(x.String(), "$1")
	case unit.Bytes:
		return strings.ReplaceAll(x.String(), " ", "")
	case set.CPUSet:
		return fmt.Sprintf("%q", x.String())
	}
	switch v.Kind() {
	case reflect.Pointer:
		return ""
	case reflect.Float64:
		return strconv.FormatFloat(v.Float(), 'g', -1, 64)
	case reflect.Map:
		return "{}"
	case reflect.Slice:
		var all []string
		for i := range v.Len() {
			e := v.Index(i)
			if e.Kind() == reflect.Struct {
				all = append(all, fmt.Sprintf("{cache: %g, bandwidth: %g}", e.Field(0).Float(), e.Field(1).Float()))
			} else {
				all = append(all, fmt.Sprintf("%q", e))
			}
		}
		return "[" + strings.Join(all, ", ") + "]"
	case reflect.String:
		if v.String() == "" {
			return `""`
		}
		return v.String()
	}
	return fmt.Sprint(v)
}

func TestConfigReference(t *testing.T) {
	var b strings.Builder
	b.WriteString(referenceHead)
	for _, k := range configKeys(t) {
		kind, of := k.typeOf()
		value := ""
		if !k.children && k.value.IsValid() {
			if value = k.yaml(); value != "" {
				value = "`" + value + "`"
			}
		}
		takes := "reload"
		if k.restart {
			takes = "restart"
		}
		name := "`" + k.path + "`"
		b.WriteString(render.MarkdownRow(name, kind, of, value, takes, "first release", strings.ReplaceAll(k.doc, "|", "\\|")))
	}
	golden.Check(t, "../../docs/reference/config.md", b.String())
}

const referenceHead = "# The agent's configuration\n\n" +
	"Written by `make reference` from the structs that read the file: change their comments, not this page. " +
	"The file is YAML: `homenode agent --check --config FILE` checks it, and shows what it matches on this host. " +
	"Every key is optional, except `name` and `match` of a service. Paths are absolute. " +
	"`reload`: 'homenode reload', or SIGHUP, is enough for a change; it takes effect with the next window. " +
	"`deploy/etc/agent.yaml` is the file that the packages install, with all keys.\n\n" +
	"| key | type | unit | default | a change needs | since | what it is |\n|---|---|---|---|---|---|---|\n"

// active are the settings of the packaged file that are not defaults.
var active = map[string]string{
	"mode": "mode: observe\n",
	"cgroups": `cgroups:
  - "/system.slice/*.service"                      # systemd's services
  - "/system.slice/*/*.service"                    # instances, such as postgresql@15-main.service
  - "/system.slice/docker-*.scope"                 # Docker with systemd's cgroup driver
  - "/docker/*"                                    # Docker with the cgroupfs driver
  - "/system.slice/nerdctl-*.scope"                # containerd by nerdctl
  - "/default/*"                                   # containerd by ctr, namespace "default"
  - "/system.slice/cri-containerd-*.scope"         # containerd by a CRI client other than the kubelet
  - "/kubepods.slice/*/*/cri-containerd-*.scope"   # Kubernetes: watched and left alone
  - "/machine.slice/*.scope"                       # libvirt and Podman: watched and left alone
`,
	"services[]": `#services:
#  - name: search
#    match: "/system.slice/search@*.service"
#    approved: false
#    target_local_ratio: 0.9
#    near: ["eth0"]
#    latency_file: "/run/search/{workload}.latency"
`,
}

const packagedHead = `# homenode's agent. Written by 'make reference'; the reference of all keys is
# docs/reference/config.md.
#
# As it is, the agent watches systemd's services and containers, and changes nothing: the
# mode is observe, and no service is approved. Lines that begin with "#" and no space are
# settings with their defaults. The way to more:
#
#   1. homenode status                            what it sees
#   2. name services below, approve none yet
#   3. homenode agent --check                     which cgroups match, and what is wrong
#   4. homenode agent --dry-run --config FILE     what it would do
#   5. approved: true for one service, mode: act, and restart the agent

`

func TestPackagedConfig(t *testing.T) {
	var b strings.Builder
	b.WriteString(packagedHead)
	skip := "" // the keys below one that is written by hand
	for _, k := range configKeys(t) {
		if skip != "" && strings.HasPrefix(k.path, skip) {
			continue
		}
		indent := strings.Repeat("  ", k.depth)
		head := "# "
		if k.depth > 0 {
			head = "#" + indent + "# "
		}
		if k.depth == 0 && b.Len() > len(packagedHead) {
			b.WriteString("\n")
		}
		for _, line := range render.Wrap(head, head, k.doc, 100) {
			b.WriteString(line + "\n")
		}
		switch text, ok := active[k.path]; {
		case ok:
			b.WriteString(text)
			if k.children {
				skip = k.path + "."
			}
		case k.children:
			b.WriteString("#" + indent + k.name + ":\n")
		default:
			b.WriteString("#" + indent + k.name + ": " + k.yaml() + "\n")
		}
	}
	golden.Check(t, "../../deploy/etc/agent.yaml", b.String())
}

var setting = regexp.MustCompile(`(?m)^#(  |[a-z])`)

// The packaged file starts as it is, approves nothing, and names no group. Its commented
// settings are the defaults.
func TestPackagedConfigLoads(t *testing.T) {
	text, err := os.ReadFile("../../deploy/etc/agent.yaml")
	if err != nil {
		t.Fatal(err)
	}
	c, err := ParseConfig(text, "agent.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if c.Mode != ModeObserve || len(c.Services) > 0 || c.API.Group+c.API.WriteGroup != "" || len(c.Cgroups) < 5 || c.Metrics.Listen != "" {
		t.Errorf("%+v", c)
	}
	for id, want := range map[string]bool{
		"/system.slice/nginx.service": true, "/system.slice/system-postgresql.slice/postgresql@15-main.service": true,
		"/system.slice/docker-0a1b.scope": true, "/docker/0a1b": true, "/default/web": true, "/init.scope": false,
		"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1.slice/cri-containerd-0a.scope": true,
	} {
		if got := slices.ContainsFunc(c.Cgroups, func(g string) bool { ok, _ := path.Match(g, id); return ok }); got != want {
			t.Errorf("%s: watched %v, want %v", id, got, want)
		}
	}
	all := setting.ReplaceAllString(strings.TrimPrefix(string(text), packagedHead), "$1")
	got, err := ParseConfig([]byte(all), "agent.yaml, all settings")
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Services) != 1 || got.Services[0].Approved {
		t.Errorf("%+v", got.Services)
	}
	want, err := ParseConfig(nil, "defaults")
	if err != nil {
		t.Fatal(err)
	}
	got.Mode, got.Cgroups, got.Services, got.Text, got.StateDirAsked = want.Mode, want.Cgroups, want.Services, want.Text, want.StateDirAsked
	if fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", want) {
		t.Errorf("a commented setting is not the default:\n got %+v\nwant %+v", got, want)
	}
}
