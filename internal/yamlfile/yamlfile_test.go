// SPDX-License-Identifier: Apache-2.0

package yamlfile

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"
)

var errBad = errors.New("malformed")

var rules = Rules{Malformed: errBad, What: "a file", Most: 1 << 20}

// level is a type that reads its own text; cap has defaults of its own.
type level int

func (l *level) UnmarshalText(text []byte) error {
	if string(text) != "high" {
		return fmt.Errorf("there is no level %q", text)
	}
	*l = 1
	return nil
}

type capacity struct {
	Size   uint8  `yaml:"size"`
	Colour string `yaml:"colour"`
}

func (c *capacity) SetDefaults() { c.Colour = "red" }

type inner struct {
	Rate float64 `yaml:"rate"`
	Name string  `yaml:"name"` // hidden by the outer one
}

type doc struct {
	inner  `yaml:",inline"`
	Name   string          `yaml:"name"`
	Count  int             `yaml:"count"`
	On     bool            `yaml:"on"`
	Period time.Duration   `yaml:"period"`
	Level  level           `yaml:"level"`
	Caps   []capacity      `yaml:"caps"`
	Pair   [2]int          `yaml:"pair"`
	Costs  map[int]float64 `yaml:"costs"`
	Maybe  *int            `yaml:"maybe"`
	Hidden int             `yaml:"-"`
}

func decode(text string) (d doc, f *Document, err error) {
	d = doc{Count: 3, Costs: map[int]float64{7: 7}}
	if f, err = Parse([]byte(text), "f", rules); err == nil {
		err = f.Decode(&d)
	}
	return d, f, err
}

func TestDecode(t *testing.T) {
	d, f, err := decode(`
name: 12         # a text is what is written
on: true
rate: 1e3
period: 1.5h
level: high
caps: [{size: 0xff}, &c {size: 7, colour: blue}, *c]
pair: [1, -2]
costs: {10: .5, 21: 2}
maybe: 0
count: ~
`)
	zero := 0
	want := doc{
		inner: inner{Rate: 1000}, Name: "12", Count: 3, On: true, Period: 90 * time.Minute, Level: 1,
		Caps: []capacity{{255, "red"}, {7, "blue"}, {7, "blue"}}, Pair: [2]int{1, -2}, Costs: map[int]float64{10: 0.5, 21: 2}, Maybe: &zero,
	}
	if err != nil || !reflect.DeepEqual(d, want) {
		t.Errorf("%v\n%+v\n%+v", err, d, want)
	}
	if !f.Wrote("caps[1].size") || !f.Wrote("costs.21") || f.Wrote("count") || f.Written()["Hidden"] || !f.Written()["name"] || f.Empty() {
		t.Errorf("%v", f.Written())
	}
	over := capacity{Colour: "green"}
	if err := f.DecodeAt("caps[0]", &over); err != nil || over != (capacity{255, "green"}) {
		t.Errorf("%v, %+v", err, over)
	}
	if err := f.DecodeAt("other", &over); err != nil {
		t.Error(err)
	}
}

// Each refusal has the file, the line, the path, and what is wanted.
func TestRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"name: x\ncolour: red":              "parse f: line 2: malformed: unknown field \"colour\"\n    2 | colour: red",
		"Hidden: 1":                         `line 1: malformed: unknown field "Hidden"`,
		"-: 1":                              `line 1: malformed: unknown field "-"`,
		"inner: {rate: 1}":                  `unknown field "inner"`,
		"name: x\non: true\nname: y":        `line 3: malformed: "name" is already defined in line 1`,
		"- 1":                               "line 1: malformed: it is a list: want settings, each a name and its value",
		"count: many":                       `line 1: malformed: count: it is "many": want a whole number`,
		"count: \"4\"":                      `count: it is "4": want a whole number`,
		"count: !!int \"4\"":                `count: it is "4": want a whole number`,
		"count: 4.7":                        "count: it is 4.7: want a whole number",
		"count: 99999999999999999999":       "count: it is 99999999999999999999: want a whole number",
		"count: [1]":                        "count: it is a list: want a whole number",
		"caps:\n- size: 256":                "line 2: malformed: caps[0].size: it is 256: want a whole number, 0 to 255",
		"caps: [{size: -1}]":                "caps[0].size: it is -1: want a whole number, 0 to 255",
		"caps: {size: 1}":                   "caps: it is a group of settings: want a list",
		"caps: [3]":                         "caps[0]: it is 3: want settings",
		"on: yes":                           `on: it is "yes": want true or false`,
		"on: 'true'":                        `on: it is "true": want true or false`,
		"rate: fast":                        `rate: it is "fast": want a number`,
		"rate: '1'":                         `rate: it is "1": want a number`,
		"rate: .nan":                        "rate: it is .nan: want a number, at most 1e+18",
		"rate: -.inf":                       "rate: it is -.inf: want a number, at most 1e+18",
		"rate: 1e309":                       "rate: it is 1e309: want a number, at most 1e+18",
		"rate: 1e19":                        "rate: it is 1e19: want a number, at most 1e+18",
		"period: 10":                        "period: it is 10: want a duration with its unit, such as 90s, 1.5h or 0s",
		"period: 0":                         "period: it is 0: want a duration with its unit",
		"period: soon":                      `period: it is "soon": want a duration`,
		"level: low":                        `level: there is no level "low"`,
		"level: [high]":                     "level: it is a list: want one value",
		"pair: [1, 2, 3]":                   "pair: it has 3 values: want 2",
		"costs: {a: 1}":                     `costs: it is "a": want a whole number`,
		"costs: [1]":                        "costs: it is a list: want names and values",
		"name: {a: 1}":                      "name: it is a group of settings: want a text",
		"name: &a x\npair: [*b, 1]":         "line 2: malformed: unknown anchor 'b'",
		"caps: &a [*a]":                     "line 1: malformed: alias *a is inside the value that it stands for",
		"name: &a x\nlevel: &a high":        "line 2: malformed: &a is there twice: give one of them another name",
		"maybe: 1\n<<: {count: 1}":          "line 2: malformed: merge keys (<<) are not supported",
		"? [a]\n: 1":                        "line 1: malformed: want a name here",
		"":                                  "parse f: malformed: it must hold exactly one YAML document",
		"# nothing\n":                       "parse f: malformed: it must hold exactly one YAML document",
		"name: x\n---\nname: y\n":           "parse f: malformed: it must hold exactly one YAML document",
		"name: [":                           "parse f: line ",
		"name:\n\ton: true":                 "indent with spaces, not with a tab",
		"name: x\non: \x00":                 "parse f: line 2: malformed: control characters are not allowed",
		"name: x\non: \xff":                 "parse f: line 2: malformed: invalid leading UTF-8 octet",
		strings.Repeat("#", 1<<20) + "\n":   "it has 1048577 bytes: a file has at most 1048576",
		"name: " + strings.Repeat("[", 500): "nested deeper than 100 levels",
		strings.Repeat("- ", 500):           "nested deeper than 100 levels",
	} {
		_, _, err := decode(text)
		if err == nil || !strings.Contains(err.Error(), want) || !errors.Is(err, errBad) || !strings.HasPrefix(err.Error(), "parse f: ") {
			t.Errorf("%.40q:\n got %v\nwant %s", text, err, want)
		}
	}
}

// Every mistake of a file is reported at once, with what was probably meant.
func TestAllMistakesAtOnce(t *testing.T) {
	_, f, err := decode("nmae: x\nperiod: 10\non: yes\ncount: '4'\ncaps: [{size: 256}, {colur: red}]\n")
	if f == nil || err == nil {
		t.Fatal(err)
	}
	want := []string{
		`1:1 unknown field "nmae": did you mean name?`,
		`2:9 it is 10: want a duration with its unit, such as 90s, 1.5h or 0s: did you mean 10s?`,
		`3:5 it is "yes": want true or false: did you mean true?`,
		`4:8 it is "4": want a whole number: did you mean 4, without quotes?`,
		`5:15 it is 256: want a whole number, 0 to 255`,
		`5:22 unknown field "colur": did you mean colour?`,
	}
	var got []string
	for _, p := range Problems(err) {
		got = append(got, fmt.Sprintf("%d:%d %s", p.Line, p.Column, p.Text))
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	many := strings.Repeat("- {a: 1}\n", 200)
	if _, _, err := decode("caps:\n" + many); len(Problems(err)) > mostFound+1 {
		t.Errorf("%d problems", len(Problems(err)))
	}
}

// Names that are there twice do not hide other mistakes.
func TestTwiceAndMore(t *testing.T) {
	f, err := Parse([]byte("name: x\nname: y\non: maybe\n"), "f", rules)
	if f == nil || len(Problems(err)) != 1 || !strings.Contains(err.Error(), "line 2: malformed: \"name\" is already defined in line 1: remove one of them") {
		t.Fatalf("%v", err)
	}
	if err := f.Decode(&doc{}); len(Problems(err)) != 1 {
		t.Errorf("%v", err)
	}
}

func TestMeant(t *testing.T) {
	for text, want := range map[string]string{"10": "10s", "1.5": "1.5s", "\"10 s\"": "10s", "5 min": "5m", "90 seconds": "90s", "soon": "", "'10s '": "10s"} {
		_, _, err := decode("period: " + text)
		if got := didYouMean(want); !strings.Contains(fmt.Sprint(err), "or 0s"+got+"\n") {
			t.Errorf("%s: %v, want %q", text, err, got)
		}
	}
	for typed, want := range map[string]string{"perod": "period", "servces": "services", "x": "", "colour": "", "serivces": "services", strings.Repeat("a", 1000): ""} {
		if got := Nearest(typed, []string{"period", "services", "mao"}); got != want {
			t.Errorf("%.20s: %q, want %q", typed, got, want)
		}
	}
}

// A long line is cut around the place.
func TestExcerptOfALongLine(t *testing.T) {
	_, _, err := decode("caps: [" + strings.Repeat("{size: 1}, ", 500) + "{size: x}]")
	lines := strings.Split(fmt.Sprint(err), "\n")
	if len(lines) != 3 || len([]rune(lines[1])) > 120 || []rune(lines[1])[len([]rune(lines[2]))-1] != 'x' {
		t.Errorf("%v", err)
	}
}

// What a caller finds wrong is shown where it is, or at the nearest part of its path that
// is there.
func TestWrong(t *testing.T) {
	d, f, err := decode("name: x\ncaps:\n  - {size: 1}\n  - {size: 2}\n")
	if err != nil || len(d.Caps) != 2 {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"caps[1].size":  "parse f: line 4: malformed: caps[1].size: no\n    4 |   - {size: 2}\n      |            ^",
		"caps[1].other": "parse f: line 4: malformed: caps[1].other: no\n    4 |   - {size: 2}\n      |     ^",
		"caps[7].a.b":   "parse f: line 3: malformed: caps[7].a.b: no\n    3 |   - {size: 1}\n      |   ^",
		"name":          "parse f: line 1: malformed: name: no\n    1 | name: x\n      |       ^",
		"other":         "parse f: malformed: other: no",
		"":              "parse f: malformed: no",
	} {
		if err := f.Wrong(path, "no"); err.Error() != want || !errors.Is(err, errBad) {
			t.Errorf("%q: %q, want %q", path, err, want)
		}
	}
}

// A file without settings leaves the defaults, where that is allowed.
func TestMayBeEmpty(t *testing.T) {
	r := rules
	r.MayBeEmpty = true
	for _, text := range []string{"", " \n", "# name: x\n\n", "---\n", "~"} {
		d := doc{Count: 3}
		f, err := Parse([]byte(text), "f", r)
		if err != nil || !f.Empty() || f.Decode(&d) != nil || d.Count != 3 {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// What is encoded reads back as it was, the least figures too.
func TestEncodeReadsBack(t *testing.T) {
	type figures struct {
		A float64 `yaml:"a"`
		B float64 `yaml:"b"`
	}
	want, got := figures{1e-9, 12345}, figures{}
	text, err := Encode(want)
	if err != nil {
		t.Fatal(err)
	}
	f, err := Parse(text, "f", rules)
	if err != nil || f.Decode(&got) != nil || got != want {
		t.Errorf("%v: %+v from\n%s", err, got, text)
	}
}

// Aliases of aliases, and all that grows with a power of its size, are refused at once.
func TestParseIsQuick(t *testing.T) {
	begin := time.Now()
	bomb := "x0: &a0 [x,x,x,x,x,x,x,x,x]\n"
	for i := range 12 {
		bomb += fmt.Sprintf("x%d: &a%d [%s]\n", i+1, i+1, strings.Repeat(fmt.Sprintf("*a%d,", i), 9))
	}
	for _, text := range []string{
		bomb, "caps: [" + strings.Repeat("1,\n", 300_000) + "]", strings.Repeat("? ", 100_000), strings.Repeat("{a: ", 100_000), strings.Repeat("!", 1<<19),
		strings.Repeat("&a ", 1<<18), strings.Repeat("[]: ", 1<<17), strings.Repeat("a: |\n", 1<<17), strings.Repeat("#\n", 1<<19),
	} {
		if _, _, err := decode(text); err == nil {
			t.Errorf("%.30q…: it was taken", text)
		}
	}
	if took := time.Since(begin); took > 20*time.Second {
		t.Errorf("it took %v", took)
	}
}

// Whatever the file, there is no panic, every error names the file, and twice is the same.
func FuzzDecode(f *testing.F) {
	for _, s := range []string{"", "- !0 ", "a: &x [*x]", "? [a]\n: 1", "&a margin: 1", "<<: {count: 1}", "name: &a x\nlevel: *a", "caps: [{size: 1}]\ncosts: {1: 2}", "--- |\n x", "%YAML 1.1\n---\n", "\ufeffname: x", "name: \"\\x", "!!map {name: !!binary x}"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		d, _, err := decode(text)
		if err != nil && (!errors.Is(err, errBad) || !strings.HasPrefix(err.Error(), "parse f: ")) {
			t.Errorf("%q: %v", text, err)
		}
		again, _, err2 := decode(text)
		if fmt.Sprint(err) != fmt.Sprint(err2) || err == nil && !reflect.DeepEqual(d, again) {
			t.Errorf("%q: %v %v", text, err, err2)
		}
	})
}
