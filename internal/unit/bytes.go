// SPDX-License-Identifier: Apache-2.0

package unit

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Bytes is an amount of memory or of traffic. JSON: a plain number.
type Bytes int64

// Binary multiples.
const (
	KiB Bytes = 1 << (10 * (iota + 1))
	MiB
	GiB
	TiB
	PiB
)

// Pages is a number of base pages; it means nothing without a page size.
type Pages int64

// Cycles is a count of clock cycles of one CPU, or summed over several.
type Cycles uint64

// Bytes returns what these pages occupy; pageSize must be positive.
func (p Pages) Bytes(pageSize Bytes) Bytes { return Bytes(p) * pageSize }

// Pages returns how many whole pages fit in b; pageSize must be positive.
func (b Bytes) Pages(pageSize Bytes) Pages { return Pages(b / pageSize) }

// String is for people: three significant digits, and never fewer than the integer has,
// in the largest binary unit that leaves at least 1. Zeros at the end of a fraction are
// left out, so that exact amounts read as they were given: "6.96 GiB", "512 MiB", "0 B".
func (b Bytes) String() string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB", "PiB"}
	v, i := float64(b), 0
	for math.Abs(v) >= 1023.5 && i < len(units)-1 {
		v, i = v/1024, i+1
	}
	digits := 0
	for size := math.Abs(v); i > 0 && digits < 2 && size < 99.95; size *= 10 {
		digits++
	}
	text := strconv.FormatFloat(v, 'f', digits, 64)
	if digits > 0 {
		text = strings.TrimRight(strings.TrimRight(text, "0"), ".")
	}
	return text + " " + units[i]
}

var byteUnits = map[string]int64{
	"": 1, "B": 1,
	"kB": 1e3, "KB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12, "PB": 1e15,
	"KiB": int64(KiB), "MiB": int64(MiB), "GiB": int64(GiB), "TiB": int64(TiB), "PiB": int64(PiB),
}

var (
	errByteNumber = errors.New("it must start with a decimal number")
	errByteRange  = errors.New("the amount does not fit 63 bits")
)

// ParseBytes reads what a person writes: "512MiB", "1.5 GiB", "80MB", "4096".
// KiB… are powers of 1024, kB… powers of 1000; a bare "512M" is refused because
// its meaning differs from tool to tool, and so is anything per second.
func ParseBytes(s string) (Bytes, error) {
	text := strings.TrimSpace(s)
	end := strings.IndexFunc(text, func(r rune) bool { return (r < '0' || r > '9') && r != '.' })
	if end < 0 {
		end = len(text)
	}
	name := strings.TrimPrefix(text[end:], " ")
	scale, ok := byteUnits[name]
	if !ok {
		return 0, fmt.Errorf("parse size %q: unknown unit %q: use B, KiB, MiB, GiB, TiB or kB, MB, GB, TB", clip(s), clip(name))
	}
	b, err := scaleBytes(text[:end], scale)
	if err != nil {
		return 0, fmt.Errorf("parse size %q: %w", clip(s), err)
	}
	return b, nil
}

// scaleBytes is exact for whole numbers; a fraction is rounded to the next byte.
func scaleBytes(digits string, scale int64) (Bytes, error) {
	if n, err := strconv.ParseInt(digits, 10, 64); err == nil {
		if n > math.MaxInt64/scale {
			return 0, errByteRange
		}
		return Bytes(n * scale), nil
	}
	f, err := strconv.ParseFloat(digits, 64)
	if errors.Is(err, strconv.ErrSyntax) || digits[0] == '.' {
		return 0, errByteNumber
	}
	if f = math.Round(f * float64(scale)); err != nil || f >= math.MaxInt64 {
		return 0, errByteRange
	}
	return Bytes(f), nil
}

// clip shortens text for an error message.
func clip(s string) string {
	if len(s) > 40 {
		return s[:40] + "…"
	}
	return s
}

// UnmarshalYAML takes a number of bytes or a size as ParseBytes does. It is
// found by its name: this room knows no YAML library.
func (b *Bytes) UnmarshalYAML(text []byte) error {
	parsed, err := ParseBytes(strings.Trim(strings.TrimSpace(string(text)), `"'`))
	if err != nil {
		return err
	}
	*b = parsed
	return nil
}
