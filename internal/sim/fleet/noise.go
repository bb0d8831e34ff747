// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	_ "embed" // noise.json
	"errors"
	"fmt"
	"math"

	"homenode/internal/schema"
	"homenode/internal/sim/detmath"
)

// NoiseSchema is the version of noise.json.
const NoiseSchema = 1

// Noise is how much a figure varies from one measurement to the next of the same thing:
// relative standard deviations, from repeats in the lab. A row's figures are multiplied by
// 1 + deviation × a normal number.
type Noise struct {
	Schema int    `json:"schema"`
	Source string `json:"source"` // what was measured, and where, in words
	// Unmeasured: the values are placeholders. Then all deviations are 0, and no file that
	// uses this noise may say that it was measured.
	Unmeasured bool          `json:"unmeasured"`
	Repeats    int           `json:"repeats"` // per measurement
	Features   FeaturesNoise `json:"features"`
	Gains      GainsNoise    `json:"gains"`
}

// FeaturesNoise is the noise of the features of a row.
type FeaturesNoise struct {
	MBW     float64 `json:"mbw"`
	MSR     float64 `json:"msr"`
	NPMR    float64 `json:"npmr"`
	RMBR    float64 `json:"rmbr"`
	CPU     float64 `json:"cpu"`
	RSS     float64 `json:"rss"`
	IPC     float64 `json:"ipc"`
	LLCMPKI float64 `json:"llc_misses_per_kilo_instruction"`
}

// GainsNoise is the noise of the quotient bound / before (a gain is 1 minus it): the
// deviation over repeats of the same pair.
type GainsNoise struct {
	Latency float64 `json:"latency"`
	CPU     float64 `json:"cpu"`
	IPC     float64 `json:"ipc"`
}

//go:embed noise.json
var packagedNoise []byte

// PackagedNoise is the noise that this version of homenode has.
func PackagedNoise() Noise {
	n, err := DecodeNoise(packagedNoise)
	if err != nil {
		panic(fmt.Sprintf("noise.json: %v", err)) // it is part of the program
	}
	return n
}

// DecodeNoise reads a noise file.
func DecodeNoise(data []byte) (Noise, error) {
	return schema.Decode[Noise](data, "noise", NoiseSchema)
}

// ErrUnmeasured is returned by Measured for placeholders.
var ErrUnmeasured = errors.New("its noise was not measured")

// leastRepeats is the fewest repeats that a standard deviation needs.
const leastRepeats = 3

// Validate says what is invalid: deviations out of range, and placeholders that look like
// measurements or the reverse.
func (n Noise) Validate() error {
	if n.Schema < 1 {
		return fmt.Errorf("schema is %d: it must be at least 1", n.Schema)
	}
	if n.Source == "" {
		return errors.New("source is empty: it must say where the figures come from")
	}
	for _, d := range n.deviations() {
		switch {
		case !(d.value >= 0 && d.value <= 1):
			return fmt.Errorf("%s is %v: a relative standard deviation is between 0 and 1", d.name, d.value)
		case n.Unmeasured && d.value != 0:
			return fmt.Errorf("%s is %v, but unmeasured is true: a figure that was not measured must be 0", d.name, d.value)
		}
	}
	if !n.Unmeasured && n.Repeats < leastRepeats {
		return fmt.Errorf("repeats is %d: a measured deviation has at least %d", n.Repeats, leastRepeats)
	}
	return nil
}

// Measured is the source of a measured noise. Placeholders are an error: nothing may
// present them as measured.
func (n Noise) Measured() (source string, err error) {
	if n.Unmeasured {
		return "", ErrUnmeasured
	}
	return n.Source, nil
}

type deviation struct {
	name  string
	value float64
}

func (n Noise) deviations() []deviation {
	f, g := n.Features, n.Gains
	return []deviation{
		{"features.mbw", f.MBW},
		{"features.msr", f.MSR},
		{"features.npmr", f.NPMR},
		{"features.rmbr", f.RMBR},
		{"features.cpu", f.CPU},
		{"features.rss", f.RSS},
		{"features.ipc", f.IPC},
		{"features.llc_misses_per_kilo_instruction", f.LLCMPKI},
		{"gains.latency", g.Latency},
		{"gains.cpu", g.CPU},
		{"gains.ipc", g.IPC},
	}
}

// put applies noise to a value, which stays within [0, most].
func put(v *float64, deviation, most float64, r *detmath.Random) {
	z := r.Normal() // drawn in any case, so that unknown figures do not shift the others' draws
	if v != nil {
		*v = math.Min(math.Max(*v*(1+deviation*z), 0), most)
	}
}

// putGain applies noise to the quotient.
func putGain(v *float64, deviation float64, r *detmath.Random) {
	z := r.Normal()
	if v != nil {
		*v -= (1 - *v) * math.Max(deviation*z, -1)
	}
}
