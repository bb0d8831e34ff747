// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"fmt"
	"path"
	"strings"

	"homenode/internal/yamlfile"
)

// Check is what 'homenode agent --check' finds. Errors stop a start, warnings do not.
type Check struct {
	Schema   int                 `json:"schema"`
	Config   string              `json:"config"` // the file; "" = the defaults
	Errors   []*yamlfile.Problem `json:"errors"`
	Warnings []*yamlfile.Problem `json:"warnings"`
	Mode     Mode                `json:"mode"`
	Watched  *int                `json:"watched"` // workloads that the agent would watch now; null = unknown
	Services []ServiceCheck      `json:"services"`
	Others   int                 `json:"others"` // watched workloads that no rule matches
	Owners   *OwnerSettings      `json:"owners"` // for a handover; null = the configuration has errors
}

// ServiceCheck is what a rule matches on this host now.
type ServiceCheck struct {
	Name      string   `json:"name"`
	Match     string   `json:"match"`
	Approved  bool     `json:"approved"`
	Workloads []string `json:"workload_ids"`
}

// OK says that an agent would start with this configuration.
func (c Check) OK() bool { return len(c.Errors) == 0 }

// CheckHost is what a check asks of a host.
type CheckHost struct {
	Workloads func(globs []string) ([]string, error)
	Group     func(name string) error // nil: it exists
	Profile   func(file string) error // nil: it can be used here
}

// CheckLayers reads a configuration as an agent does, and compares it with a host.
func CheckLayers(h CheckHost, layers ...Layer) Check {
	r := Check{Schema: 1, Errors: []*yamlfile.Problem{}, Warnings: []*yamlfile.Problem{}, Services: []ServiceCheck{}}
	if len(layers) > 0 {
		r.Config = layers[0].Name
	}
	c, err := ParseLayers(layers...)
	if err != nil {
		r.Errors = yamlfile.Problems(err)
		return r
	}
	c = c.withDeployed()
	r.Mode, r.Owners = c.Mode, ownersOf(c)
	p := places{docs: documents(layers)}
	p.group(h, "api.group", c.API.Group)
	p.group(h, "api.write_group", c.API.WriteGroup)
	r.Errors = append(r.Errors, p.found...)
	p.found = nil
	if c.Profile != "" {
		if err := h.Profile(c.Profile); err != nil {
			p.warn("profile", "%v: the agent starts without it, and costs are estimates", err)
		}
	}
	for _, problem := range c.Unread {
		p.found = append(p.found, &yamlfile.Problem{File: c.Deployments, Text: problem}) // of no line of a configuration
	}
	r.match(c, h, &p)
	r.Warnings = append(r.Warnings, p.found...)
	return r
}

// places puts findings at their lines.
type places struct {
	docs  []*yamlfile.Document
	found []*yamlfile.Problem
}

// documents are the layers, decoded; they were read without an error before.
func documents(layers []Layer) (docs []*yamlfile.Document) {
	f := defaultFile()
	for _, l := range layers {
		doc, err := yamlfile.Parse(l.Text, l.Name, configRules())
		if err == nil && doc.Decode(&f) == nil {
			docs = append(docs, doc)
		}
	}
	return docs
}

func (p *places) warn(key, format string, args ...any) {
	p.found = append(p.found, yamlfile.Problems(wrong{key, fmt.Sprintf(format, args...)}.in(p.docs, "defaults"))...)
}

func (p *places) group(h CheckHost, key, name string) {
	if name == "" {
		return
	}
	if err := h.Group(name); err != nil {
		p.warn(key, noGroup, name, name)
	}
}

// match fills in which workloads are which service, and warns of rules that match none.
func (r *Check) match(c Config, h CheckHost, p *places) {
	ids, err := h.Workloads(c.Cgroups)
	if err != nil {
		p.warn("cgroups", "this host's cgroups cannot be read: %v", err)
	} else {
		n := len(ids)
		r.Watched = &n
	}
	byRule := make([][]string, len(c.Services))
	for _, id := range ids {
		if i := c.ruleIndex(id); i >= 0 {
			byRule[i] = append(byRule[i], id)
		} else {
			r.Others++
		}
	}
	if err == nil && len(ids) == 0 && len(c.Cgroups) > 0 {
		p.warn("cgroups", "no pattern matches a cgroup with processes now: 'systemd-cgls' shows those that there are")
	}
	for i, s := range c.Services {
		r.Services = append(r.Services, ServiceCheck{Name: s.Name, Match: s.Match, Approved: s.Approved, Workloads: append([]string{}, byRule[i]...)})
		key := fmt.Sprintf("services[%d].match", i)
		switch why := c.never(i); {
		case why != "":
			p.warn(key, "it can never match: %s", why)
		case err == nil && len(byRule[i]) == 0:
			p.warn(key, "it matches no watched cgroup now")
		}
	}
}

func (c Config) ruleIndex(id string) int {
	for i, s := range c.Services {
		if s.matches(id) {
			return i
		}
	}
	return -1
}

// never says why a rule can match no workload, whatever runs; "" if it can.
func (c Config) never(i int) string {
	s := c.Services[i]
	if !strings.HasPrefix(s.Match, "/") {
		return fmt.Sprintf("the path of a cgroup begins with a slash: did you mean %q?", "/"+s.Match)
	}
	for j, before := range c.Services[:i] {
		if before.Match == s.Match {
			return fmt.Sprintf("services[%d] (%s) has the same pattern, and the first rule that matches counts", j, before.Name)
		}
	}
	if len(c.Cgroups) == 0 {
		return ""
	}
	for _, g := range c.Cgroups {
		if mayBothMatch(g, s.Match) {
			return ""
		}
	}
	return "no pattern of cgroups has such paths: add one there (a * does not match a slash)"
}

// mayBothMatch is false only if no path matches both patterns: they have as many parts,
// and each pair of parts can be the same.
func mayBothMatch(a, b string) bool {
	x, y := strings.Split(path.Clean(a), "/"), strings.Split(path.Clean(b), "/")
	if len(x) != len(y) {
		return false
	}
	for i := range x {
		if !mayBeSame(x[i], y[i]) {
			return false
		}
	}
	return true
}

const special = `*?[\`

func mayBeSame(a, b string) bool {
	switch plainA, plainB := !strings.ContainsAny(a, special), !strings.ContainsAny(b, special); {
	case plainA && plainB:
		return a == b
	case plainA:
		ok, err := path.Match(b, a)
		return ok || err != nil
	case plainB:
		return mayBeSame(b, a)
	}
	// Two patterns: what comes before the first special character must agree.
	x, y := a[:strings.IndexAny(a, special)], b[:strings.IndexAny(b, special)]
	return strings.HasPrefix(x, y) || strings.HasPrefix(y, x)
}
