// SPDX-License-Identifier: Apache-2.0

package record

import (
	"regexp"
	"slices"
	"strings"
	"sync"
)

// filter returns the part of a file's text that may be saved. The rest becomes "?", so
// that a malformed file stays malformed.
type filter func(text string) string

// form compiles a pattern when it is first asked for: every start of homenode would pay for all
// of them, and few commands need any.
func form(pattern string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(pattern) })
}

var (
	number  = form(`^\(?-?(0x)?[0-9a-fA-F]{1,20}K?([-:/][0-9]{1,5})*\)?$`)
	decimal = form(`^\(?-?[0-9]{1,20}\)?$`)
	// name is the name of a counter: with a few digits as in "dma32", never as many as
	// a serial number.
	name    = form(`^[A-Za-z_-]+([0-9]{1,2}[A-Za-z]{0,2})?(\([a-z]+\))?:?$`)
	release = form(`^[0-9]+\.[0-9]+(\.[0-9]+)?`)
)

// known are all words that may be in files of words.
var known = []string{
	"Data", "Instruction", "Unified", // cache/index*/type
	"on", "off", "forceoff", "notsupported", "notimplemented", // smt/control
	"always", "madvise", "never", "defer", "defer+madvise", "true", "false", // mm
}

// tokens replaces every token that ok refuses. Blanks, commas and the NULs that some
// trees are padded with stay.
func tokens(text string, ok func(string) bool) string {
	var b strings.Builder
	for text != "" {
		at := strings.IndexAny(text, " \t\r\n,\x00")
		switch {
		case at == 0:
			b.WriteByte(text[0])
			text = text[1:]
			continue
		case at < 0:
			at = len(text)
		}
		token := text[:at]
		if !ok(token) {
			token = "?"
		}
		b.WriteString(token)
		text = text[at:]
	}
	return b.String()
}

// numbers are lists, masks, sizes and PCI ids: 0-3,8 00000000,000000ff 32K 0x020000.
func numbers(text string) string { return tokens(text, number().MatchString) }

// counters are lines of a name and numbers, such as meminfo and vmstat.
func counters(text string) string {
	return tokens(text, func(s string) bool { return decimal().MatchString(s) || len(s) <= 48 && name().MatchString(s) })
}

// kfdKeys tell where a GPU is and how it is linked; "unique_id" is its serial number.
var kfdKeys = []string{"domain", "location_id", "type", "node_from", "node_to", "weight", "min_bandwidth", "max_bandwidth"}

// kfdProperties keeps the lines of these keys.
func kfdProperties(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if f := strings.Fields(line); len(f) == 2 && slices.Contains(kfdKeys, f[0]) && decimal().MatchString(f[1]) {
			b.WriteString(f[0] + " " + f[1] + "\n")
		}
	}
	return b.String()
}

// words are settings: one choice of a few, the chosen one in brackets.
func words(text string) string {
	return tokens(text, func(s string) bool {
		return decimal().MatchString(s) || slices.Contains(known, strings.Trim(s, "[]"))
	})
}

// version is a kernel's version, without its builder's suffix.
func version(text string) string { return release().FindString(text) + "\n" }

// cpuinfoKeys describe the kind of CPU. "Serial" (Arm), "identification" (s390) and
// "machine" (POWER) would identify the single CPU.
var cpuinfoKeys = []string{
	"processor", "vendor_id", "cpu family", "model", "model name", "stepping", "microcode", "cache size",
	"physical id", "siblings", "core id", "cpu cores", "flags", "bugs", "address sizes",
	"CPU implementer", "CPU architecture", "CPU variant", "CPU part", "CPU revision", "Features",
	"cpu", "revision", "platform", "isa", "mmu", "uarch",
}

// cpuinfo keeps the lines of these keys, and the lines that separate the CPUs.
func cpuinfo(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		key, _, _ := strings.Cut(line, ":")
		if key = strings.TrimSpace(key); key == "" || slices.Contains(cpuinfoKeys, key) {
			b.WriteString(line)
		}
	}
	return b.String()
}

var architecture = form(`^[a-z0-9_]{1,16}$`)

// noFile keeps the part of hwloc's file that replaces missing files: the page size, and
// for lstopo the architecture. The file also has the host's name.
func noFile(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		key, value, _ := strings.Cut(line, ":")
		switch {
		case key == "PageSize":
			b.WriteString(key + ":" + numbers(value))
		case key == "Architecture" && architecture().MatchString(strings.TrimSpace(value)):
			b.WriteString(line)
		}
	}
	return b.String()
}

// address is a name that contains a hardware address: enx0123456789ab, ibx and more.
var address = form(`[0-9a-f]{12,}|([0-9a-fA-F]{2}[:_-]){5}[0-9a-fA-F]{2}`)

// plain are names that the kernel, udev or a person gives a device.
var plain = form(`^[A-Za-z][A-Za-z0-9_.+-]{0,31}$`)

// aliases replaces names that may not be saved, in the order in which they come:
// enx0123456789ab becomes anon1.
type aliases map[string]string

func (a aliases) of(name string) string {
	if plain().MatchString(name) && !address().MatchString(name) {
		return name
	}
	if a[name] == "" {
		a[name] = "anon" + itoa(len(a)+1)
	}
	return a[name]
}
