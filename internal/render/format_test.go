// SPDX-License-Identifier: Apache-2.0

package render

import (
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"homenode/internal/unit"
)

func TestFormats(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{Number(0), "0"}, {Number(0.01234), "0.0123"}, {Number(0.9996), "1.00"}, {Number(1.234), "1.23"}, {Number(12.345), "12.3"}, {Number(99.96), "100"},
		{Number(999.6), "1,000"}, {Number(-1234567), "-1,234,567"}, {Number(0.00001234), "1.23e-05"}, {Number(2e18), "2e+18"},
		{Scaled(999.96, 4), "1,000"}, {Scaled(12345678, 4), "12.35 M"}, {Scaled(2.5e12, 4), "2,500 G"}, {Scaled(9999999, 4), "9,999,999"},
		{Short(0), "0"}, {Short(0.2), "0.2"}, {Short(5000), "5000"}, {Short(100e3), "100k"}, {Short(20e6), "20M"}, {Short(-0.25), "-0.25"},
		{Whole(2.5), "2.5"}, {Whole(1234), "1,234"}, {Commas(-1234.4), "-1,234"}, {Fixed(1234.5, 1), "1,234.5"},
		{Percent(0), "0%"}, {Percent(0.00123), "0.12%"}, {Percent(0.578), "57.8%"}, {Percent(12.34), "1,234%"}, {Change(-0.121), "−12.1%"}, {Change(0.05), "+5.0%"}, {Times(1.0834), "×1.083"}, {Times(0.0312), "×0.0312"}, {Times(215.3), "×215"}, {Times(48.21), "×48.2"}, {Times(0), "×0"}, {Times(1234), "×1,234"},
		{WholePercent(0.934), "93%"}, {CPUs(1.5), "1.50"}, {Tenths(82.36), "82.4"}, {Tenths(12345), "12,345"},
		{ShortBytes(0), "0"}, {ShortBytes(900), "900"}, {ShortBytes(312 * unit.MiB), "312M"}, {ShortBytes(3 * unit.GiB / 2), "1.5G"}, {ShortBytes(213 * unit.GiB / 10), "21G"},
		{Precise(0.57), "0.57"}, {Precise(0.89964), "0.8996"}, {Precise(41.7561), "41.76"}, {Precise(536870912), "536,870,912"}, {Precise(5.8e-08), "5.8e-08"},
		{YesNo(unit.Some(true)), "yes"}, {YesNo(unit.Some(false)), "no"}, {YesNo(unit.None[bool]()), Unknown},
		{Amount(6), "6"}, {Amount(0.4), "0.4"}, {Amount(1000), "1,000"}, {Amount(0.0000125), "1.25e-05"}, {Rate(200e6), "200 MB/s"}, {Rate(1.234e9), "1.23 GB/s"}, {Rate(999.9e6), "1 GB/s"}, {Rate(12), "12 B/s"},
		{Seconds(0), "0 s"}, {Seconds(5e-9), "5 ns"}, {Seconds(0.05), "50 ms"}, {Seconds(2523 * 3600), "2,523 h"}, {Seconds(0.0102), "10.2 ms"}, {Span(340 * time.Microsecond), "340 µs"}, {Span(12340 * time.Microsecond), "12.3 ms"}, {Span(15800 * time.Millisecond), "15.8 s"},
		{Span(59990 * time.Millisecond), "1 min"}, {Span(123 * time.Second), "2 min 3 s"}, {Span(2 * time.Hour), "2 h"}, {Seconds(26*3600 + 300), "26 h 5 min"}, {Seconds(3599.9), "1 h"},
		{Took(0), Unknown}, {Took(math.NaN()), Unknown}, {Took(1e12), Unknown}, {Date(time.Time{}), Unknown},
		{Show(unit.None[float64](), Number), Unknown}, {Positive(0, Number), Unknown}, {Positive(2, Number), "2.00"},
		{Range("1.2 ms", "1.4 ms"), "1.2–1.4 ms"}, {Range("1 min 2 s", "2 min 2 s"), "1 min 2 s–2 min 2 s"}, {Range("900 µs", "1.4 ms"), "900 µs–1.4 ms"}, {Range("×1.1", "×1.2"), "1.1–1.2"}, {Range("8.1%", "9.2%"), "8.1–9.2%"},
		{Count(1, "process"), "1 process"}, {Count(12345, "call"), "12,345 calls"}, {Count(2, "process"), "2 processes"}, {Count(0, "policy"), "0 policies"}, {Count(2, "mix"), "2 mixes"},
		{List(nil), ""}, {List([]string{"a", "b", "c"}), "a, b and c"}, {ListFew([]string{"a", "b", "c", "d"}, 2), "a, b and 2 more"},
		{Bytes(1.5 * 1024), "1.5 KiB"}, {Mark(unit.HowModelled), "^"}, {How(unit.HowModelled), "modelled (lab)"}, {Name(" "), "-"},
	} {
		if c.got != c.want {
			t.Errorf("%q, want %q", c.got, c.want)
		}
	}
}

// A figure never has fewer digits than it was asked for, nor fewer than its integer.
func TestSignificant(t *testing.T) {
	for digits := 2; digits <= 5; digits++ {
		for exponent := -3; exponent < 9; exponent++ {
			for _, m := range []float64{1, 1.04999, 2.5, 9.949, 9.9951, 9.99951} {
				v := m * math.Pow10(exponent)
				back, err := strconv.ParseFloat(strings.ReplaceAll(Significant(v, digits), ",", ""), 64)
				if err != nil || math.Abs(back-v) > 0.5001*math.Pow10(1-digits)*v {
					t.Errorf("%v with %d digits reads %s", v, digits, Significant(v, digits))
				}
			}
		}
	}
}
