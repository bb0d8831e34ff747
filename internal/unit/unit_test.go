// SPDX-License-Identifier: Apache-2.0

package unit

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"testing"
)

func TestDecodeBytes(t *testing.T) {
	for _, c := range []struct {
		in   string
		want Bytes
	}{
		{"0", 0}, {"4096", 4096}, {"7B", 7}, {"512MiB", 512 * MiB}, {"1.5 GiB", 3 * GiB / 2}, {" 80MB\n", 80e6},
		{"1kB", 1000}, {"1KB", 1000}, {"8KiB", 8192}, {"1PiB", PiB}, {"0.3KiB", 307}, {"9223372036854775807", math.MaxInt64},
	} {
		if got, err := ParseBytes(c.in); err != nil || got != c.want {
			t.Errorf("ParseBytes(%q) = %d, %v; want %d", c.in, got, err, c.want)
		}
	}
	for in, want := range map[string]string{
		"": "decimal number", "MiB": "decimal number", "-1MiB": "unknown unit", "512M": `unknown unit "M"`, "80MB/s": `unknown unit "MB/s"`,
		"1e3": "unknown unit", "1..2GiB": "decimal number", ".5GiB": "decimal number", "9223372036854775808": "63 bits", "8192PiB": "63 bits", "9999999.5PiB": "63 bits", "1  B": "unknown unit",
	} {
		if got, err := ParseBytes(in); err == nil || got != 0 || !strings.Contains(err.Error(), want) {
			t.Errorf("ParseBytes(%q) = %d, %v; want an error with %q", in, got, err, want)
		}
	}
}

func TestBytesString(t *testing.T) {
	for b, want := range map[Bytes]string{
		0: "0 B", 1023: "1023 B", 1024: "1 KiB", 1536: "1.5 KiB", 512 * MiB: "512 MiB", GiB - 1: "1 GiB", 3 * GiB / 2: "1.5 GiB",
		-3 * MiB: "-3 MiB", math.MaxInt64: "8192 PiB", 7*GiB - 41*MiB: "6.96 GiB", 99*MiB + 980*KiB: "100 MiB", 1023 * MiB: "1023 MiB",
		12*MiB + 345*KiB: "12.3 MiB",
	} {
		if b.String() != want {
			t.Errorf("%d prints as %s, want %s", int64(b), b, want)
		}
	}
	if Pages(3).Bytes(4*KiB) != 12*KiB || (9*KiB).Pages(4*KiB) != 2 {
		t.Error("pages and bytes do not convert")
	}
}

func TestRatioOf(t *testing.T) {
	if r, ok := RatioOf(1, 4).Get(); !ok || r != 0.25 || r.String() != "25.0%" {
		t.Errorf("1/4 = %v", r)
	}
	for _, c := range [][2]float64{{0, 0}, {1, 0}, {-1, 2}, {3, 2}, {math.NaN(), 1}, {1, math.NaN()}, {1, math.Inf(1)}, {1, -1}} {
		if r := RatioOf(c[0], c[1]); r.Known() {
			t.Errorf("RatioOf(%v) = %v, want unknown", c, r)
		}
	}
}

func TestOpt(t *testing.T) {
	type row struct {
		A Opt[Bytes]   `json:"a"`
		B Opt[int]     `json:"b,omitzero"`
		C Opt[Ratio]   `json:"c"`
		D Opt[[]int]   `json:"d"`
		E Opt[float64] `json:"e"`
	}
	in := row{A: Some(2 * KiB), C: Some(Ratio(math.NaN())), D: Some([]int{1}), E: Some(math.Inf(1))}
	text, err := json.Marshal(in)
	if want := `{"a":2048,"c":null,"d":[1],"e":null}`; err != nil || string(text) != want {
		t.Fatalf("got %s, %v; want %s", text, err, want)
	}
	out := row{C: Some(Ratio(1))}
	if err := json.Unmarshal(text, &out); err != nil || out.A != in.A || out.C.Known() || out.B != None[int]() {
		t.Fatalf("back: %+v, %v", out, err)
	}
	if err := json.Unmarshal([]byte(`{"a":"x"}`), &out); err == nil || out.A.Known() {
		t.Errorf("malformed: %+v, %v", out.A, err)
	}
	if None[int]().Or(7) != 7 || Some(3).Or(7) != 3 || OptOf(3, false).Known() || None[int]().String() != "unknown" || Some(GiB).String() != "1 GiB" {
		t.Error("Or, OptOf or String is wrong")
	}
}

func TestValueJSON(t *testing.T) {
	for _, c := range []struct {
		v    Value[int]
		want string
	}{
		{Value[int]{}, `{"value":null,"how":"unknown"}`},
		{Measured(3, "perf r01d3"), `{"value":3,"how":"measured","from":"perf r01d3"}`},
		{Modelled(0, "lab"), `{"value":0,"how":"modelled","from":"lab"}`},
		{Estimated(-1, "cpu share"), `{"value":-1,"how":"estimated","from":"cpu share"}`},
		{UnknownValue[int]("no perf"), `{"value":null,"how":"unknown","from":"no perf"}`},
	} {
		text, err := json.Marshal(c.v)
		if err != nil || string(text) != c.want {
			t.Errorf("got %s, %v; want %s", text, err, c.want)
		}
		back := Measured(99, "stale")
		if err := json.Unmarshal(text, &back); err != nil || back != c.v {
			t.Errorf("%s reads back as %v, %v", text, back, err)
		}
	}
}

func TestValueRefuses(t *testing.T) {
	for _, bad := range []string{`{"value":3,"how":"unknown"}`, `{"value":3}`, `{"value":null,"how":"measured"}`, `{"value":3,"how":"guessed"}`, `{"value":"x","how":"measured"}`, `7`} {
		v := Measured(99, "stale")
		if err := json.Unmarshal([]byte(bad), &v); err == nil || v != (Value[int]{}) {
			t.Errorf("%s reads as %v, %v; want an error and no value", bad, v, err)
		}
	}
	if v := Measured(math.NaN(), "x/0"); v.Known() || v.How != HowUnknown || v.String() != "unknown (x/0: not a finite number)" {
		t.Errorf("NaN became %v", v)
	}
}

func TestSource(t *testing.T) {
	if WeakestKnown(HowMeasured, HowUnknown, HowModelled) != HowModelled || WeakestKnown(HowUnknown) != HowUnknown || WeakestKnown() != HowUnknown {
		t.Error("the weakest source that is known")
	}
	if Weakest(HowMeasured, HowEstimated, HowModelled) != HowEstimated || Weakest() != HowUnknown || Weakest(HowMeasured) != HowMeasured {
		t.Error("Weakest is wrong")
	}
	if Measured(512*MiB, "memory.numa_stat").String() != "512 MiB (measured, memory.numa_stat)" || Source(9).String() != "Source(9)" {
		t.Error("String is wrong")
	}
}

func FuzzParseBytes(f *testing.F) {
	for _, seed := range []string{"512MiB", "1.5 GiB", "80MB/s", "", "9223372036854775807", "0.1PB"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, err := ParseBytes(text)
		if err != nil && got != 0 || got < 0 {
			t.Fatalf("ParseBytes(%q) = %d, %v", text, got, err)
		}
		if again, err := ParseBytes(strconv.FormatInt(int64(got), 10) + "B"); err != nil || again != got {
			t.Fatalf("%d reads back as %d, %v", got, again, err)
		}
		if got > math.MaxInt64/100*99 { // may print as one more than fits
			return
		}
		human, err := ParseBytes(got.String())
		if err != nil || math.Abs(float64(human-got)) > 0.05*float64(got) {
			t.Fatalf("%d prints as %s, which reads as %d, %v", got, got, human, err)
		}
	})
}

func FuzzValueJSON(f *testing.F) {
	f.Add([]byte(`{"value":3,"how":"measured","from":"x"}`))
	f.Add([]byte(`{"value":null}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var v, again Value[float64]
		if err := json.Unmarshal(data, &v); err != nil {
			if v != (Value[float64]{}) {
				t.Fatalf("error and value: %v", v)
			}
			return
		}
		text, err := json.Marshal(v)
		if err == nil {
			err = json.Unmarshal(text, &again)
		}
		if err != nil || again != v {
			t.Fatalf("%s reads back as %v, %v", text, again, err)
		}
	})
}
