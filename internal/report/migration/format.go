// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"math"
	"strconv"
	"strings"
	"time"

	"homenode/internal/set"
	"homenode/internal/unit"
)

const unknown = "unknown"

// size prints bytes as people do: "1.5 MiB".
func size(b unit.Bytes) string {
	text := b.String()
	number := strings.TrimRight(text, "BKMGTPi")
	return number + " " + text[len(number):]
}

// cell is a size in a table, where most are nothing.
func cell(b unit.Bytes) string {
	if b == 0 {
		return "-"
	}
	return size(b)
}

func cellOpt(o unit.Opt[unit.Bytes]) string {
	if b, ok := o.Get(); ok {
		return cell(b)
	}
	return unknown
}

// rate prints bytes a second in powers of 1000, as --rate is mostly given.
func rate(perSecond float64) string {
	for _, u := range []struct {
		name  string
		scale float64
	}{{"GB/s", 1e9}, {"MB/s", 1e6}, {"kB/s", 1e3}} {
		if perSecond >= u.scale*0.9995 {
			return digits(perSecond/u.scale) + " " + u.name
		}
	}
	return digits(perSecond) + " B/s"
}

// digits prints three significant digits, and never fewer than the integer has.
func digits(v float64) string {
	switch size := math.Abs(v); {
	case size >= 99.95 || v == 0:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case size >= 9.995:
		return strconv.FormatFloat(v, 'f', 1, 64)
	case size >= 0.01:
		return strconv.FormatFloat(v, 'f', 2, 64)
	}
	return strconv.FormatFloat(v, 'g', 2, 64)
}

// span prints a duration: "340 µs", "12.3 ms", "15.8 s", "2 min 3 s".
func span(d time.Duration) string {
	switch {
	case d < time.Microsecond:
		return strconv.FormatInt(int64(d), 10) + " ns"
	case d < time.Millisecond:
		return digits(float64(d)/1e3) + " µs"
	case d < time.Second:
		return digits(float64(d)/1e6) + " ms"
	case d < time.Minute:
		return digits(d.Seconds()) + " s"
	case d < time.Hour:
		d = d.Round(time.Second)
		return strconv.Itoa(int(d.Minutes())) + " min " + strconv.Itoa(int(d.Seconds())%60) + " s"
	}
	return d.Round(time.Second).String()
}

// limit prints a duration that a person chose: "20 ms".
func limit(d time.Duration) string {
	number, name, _ := strings.Cut(span(d), " ")
	if strings.Contains(number, ".") {
		number = strings.TrimRight(strings.TrimRight(number, "0"), ".")
	}
	return number + " " + name
}

// mostSeconds is about 30 years; more is nobody's estimate.
const mostSeconds = 1e9

func seconds(o unit.Opt[float64]) string {
	s, ok := o.Get()
	if !ok || s < 0 || s > mostSeconds {
		return unknown
	}
	return span(time.Duration(s * float64(time.Second)))
}

// count says "1 page", "1,234 pages".
func count(n int, what string) string {
	text := strconv.Itoa(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	if n == 1 {
		return "1 " + what
	}
	return text + " " + plural(what)
}

func plural(what string) string {
	if strings.HasSuffix(what, "ss") {
		return what + "es"
	}
	return what + "s"
}

// nodes says "node 1", "nodes 0-2".
func nodes(s set.NodeSet) string {
	if s.Len() == 1 {
		return "node " + s.String()
	}
	return "nodes " + s.String()
}

// how is never left out: a modelled figure is not shown as a measured one.
func how(s unit.Source) string {
	if s == unit.HowModelled {
		return "modelled (lab)"
	}
	return s.String()
}
