// SPDX-License-Identifier: Apache-2.0

package render

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

func TestWrap(t *testing.T) {
	for _, c := range []struct {
		head, indent, text string
		width              int
		want               []string
	}{
		{"", "", "", 10, []string{""}},
		{"a: ", "   ", "one two three", 10, []string{"a: one two", "   three"}},
		{"", "  ", "--max-stall is not broken", 12, []string{"--max-stall", "  is not", "  broken"}},
		{"", "", "abcdefghij k", 4, []string{"abcd", "efgh", "ij k"}},
		{"", "", "a\u00a0b c", 3, []string{"a b", "c"}},
		{"", "", "節点 節点", 5, []string{"節点", "節点"}},
		{"", "", "節点節点", 5, []string{"節点", "節点"}},
	} {
		if got := Wrap(c.head, c.indent, c.text, c.width); !slices.Equal(got, c.want) {
			t.Errorf("%q in %d: %q, want %q", c.text, c.width, got, c.want)
		}
	}
}

// No line is wider than there is room, and no word is lost.
func TestWrapKeepsAll(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		var words []string
		for range random.IntN(12) {
			words = append(words, string([]rune("aé節…")[random.IntN(4)])+strings.Repeat("x", random.IntN(30)))
		}
		width := 8 + random.IntN(60)
		lines := Wrap("> ", "  ", strings.Join(words, " "), width)
		for _, l := range lines {
			if Width(l) > width {
				t.Fatalf("%d columns of %d: %q", Width(l), width, l)
			}
		}
		blank := strings.NewReplacer(" ", "", ">", "")
		if got, want := blank.Replace(strings.Join(lines, "")), strings.Join(words, ""); got != want {
			t.Fatalf("%q, want %q", got, want)
		}
	}
}

func TestClip(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{Clip("abcdef", 4), "abc…"}, {Clip("abcd", 4), "abcd"}, {Clip("節点節", 4), "節…"}, {Clip("a", 0), ""},
		{ClipLeft("/demo/abc", 5), "…/abc"}, {ClipLeft("abc", 5), "abc"}, {PadLeft("節", 3), " 節"}, {PadRight("ab", 3), "ab "},
	} {
		if c.got != c.want {
			t.Errorf("%q, want %q", c.got, c.want)
		}
	}
}

func TestTable(t *testing.T) {
	table := Table{Columns: []Column{{Head: "name", Left: true, Least: 4}, {Head: "a"}, {Head: "b", Rank: 2}, {Head: "c", Rank: 1}}}
	table.Add("/demo/first", "1", "22", "333")
	for _, c := range []struct {
		width int
		want  string
	}{
		{40, "name         a   b    c\n/demo/first  1  22  333\n"},
	} {
		p := TextOptions{Width: c.width, UTF8: true}.Terminal()
		p.Table(table)
		if p.String() != c.want {
			t.Errorf("in %d columns:\n%s", c.width, p.String())
		}
	}
	for width := 8; width < 24; width++ {
		p := Terminal{TextOptions: TextOptions{Width: width, UTF8: true}}
		p.Table(table)
		for _, line := range strings.Split(p.String(), "\n") {
			if Width(line) > width {
				t.Errorf("%d columns of %d: %q", Width(line), width, line)
			}
		}
	}
}

// A table that is continued below shows every figure once, and the keys each time.
func TestTableContinued(t *testing.T) {
	table := TableOf(1, 12, 12, "key", "first\nfigure", "second", "third", "fourth")
	table.Add("row", "1000001", "1000002", "1000003", "1000004")
	table.Add("none", "", "", "", "x")
	p := TextOptions{Width: 40}.Terminal()
	p.Table(table)
	text := p.String()
	for _, figure := range []string{"1000001", "1000002", "1000003", "1000004"} {
		if strings.Count(text, figure) != 1 {
			t.Errorf("%s is there %d times in\n%s", figure, strings.Count(text, figure), text)
		}
	}
	if strings.Count(text, "row") != 2 {
		t.Errorf("the key is there %d times in\n%s", strings.Count(text, "row"), text)
	}
}

var errFull = errors.New("disk full")

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errFull }

func TestFlush(t *testing.T) {
	p := TextOptions{}.Terminal()
	p.Wrapped("", "× ± … █")
	if err := p.Flush(full{}, "report"); !errors.Is(err, errFull) {
		t.Error(err)
	}
	var b strings.Builder
	if err := p.Flush(&b, "report"); err != nil || b.String() != "x ~ ~ #\n" {
		t.Errorf("%q, %v", b.String(), err)
	}
}

// What is more than nothing is seen, and nothing is longer than there is room.
func TestBar(t *testing.T) {
	for _, utf8 := range []bool{false, true} {
		p, last := TextOptions{UTF8: utf8}.Terminal(), 0
		for part := range 101 {
			n := Width(p.Bar(float64(part), 100, 10))
			if (part == 0) != (n == 0) || n > 10 || n < last {
				t.Errorf("%d %%: %d columns", part, n)
			}
			last = n
		}
	}
	if Progress(0.5, 4) != "##.." || Progress(7, 2) != "##" || Progress(-1, 2) != ".." {
		t.Error("Progress is wrong")
	}
}

func TestFold(t *testing.T) {
	const in = "  l2_misses  refused  r0964  one event\nshort\n    averyveryverylongwordthatdoesnotfit and more\n"
	const want = "  l2_misses\n    refused\n    r0964  one\n    event\nshort\n    averyveryverylongwordthatdoesnotfit\n      and more\n"
	if got := Fold(in, 15); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if got := Fold(in, 60); got != in {
		t.Errorf("lines that fit are changed:\n%s", got)
	}
}

// No word is lost, and a line is wider than the terminal only if a word is.
func TestFoldKeepsAll(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 3000 {
		var in strings.Builder
		for range rng.IntN(60) {
			in.WriteString([]string{"a", "Σß", "memory", "  ", " ", "\n", "nineteencharacters1", "─"}[rng.IntN(8)])
		}
		width := 1 + rng.IntN(30)
		got := Fold(in.String(), width)
		if a, b := strings.Fields(in.String()), strings.Fields(got); !slices.Equal(a, b) {
			t.Fatalf("%q at %d: %q", in.String(), width, got)
		}
		for line := range strings.Lines(got) {
			if line = strings.TrimSpace(line); Width(line) > width && len(strings.Fields(line)) > 1 {
				t.Fatalf("%q at %d: line %q", in.String(), width, line)
			}
		}
	}
}
