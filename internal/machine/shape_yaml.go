// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"errors"

	"homenode/internal/yamlfile"
)

// maxShapeFile bounds what a shape file may hold; the largest here has 2 KiB.
const maxShapeFile = 64 << 10

// ParseShape reads a shape file (see lab/shapes/two.yaml). Unknown and repeated
// keys are errors; so is whatever Validate finds. An error names the file and
// the line and shows it; then the Shape is zero.
func ParseShape(data []byte, file string) (Shape, error) {
	doc, err := yamlfile.Parse(data, file, yamlfile.Rules{Malformed: ErrMalformed, What: "a shape", Most: maxShapeFile})
	if err != nil {
		return Shape{}, err
	}
	s := Shape{Model: DefaultModel(), Threads: 1}
	if err := doc.Decode(&s); err != nil {
		return Shape{}, err
	}
	var errs []error
	for _, p := range s.problems() {
		errs = append(errs, doc.Wrong(p.path, p.text))
	}
	if len(errs) > 0 {
		return Shape{}, errors.Join(errs...)
	}
	return s, nil
}
