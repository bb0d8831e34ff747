// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Choose returns the parts that --only and --skip leave, by their names.
func Choose(onlyNames, skipNames []string) ([]Part, error) {
	only, err := namedParts("--only", onlyNames)
	if err != nil {
		return nil, err
	}
	skip, err := namedParts("--skip", skipNames)
	if err != nil {
		return nil, err
	}
	if len(only) == 0 {
		only = Parts()
	}
	left := slices.DeleteFunc(only, func(p Part) bool { return slices.Contains(skip, p) })
	if len(left) == 0 {
		return nil, errors.New("--only and --skip leave nothing to measure")
	}
	return left, nil
}

func namedParts(flag string, names []string) ([]Part, error) {
	var parts []Part
	for _, n := range names {
		if !slices.Contains(Parts(), Part(n)) {
			return nil, fmt.Errorf("%s: unknown part %q: want some of %s", flag, n, Names(Parts()))
		}
		parts = append(parts, Part(n))
	}
	return parts, nil
}

// Names lists parts for a reader.
func Names(parts []Part) string {
	names := make([]string, len(parts))
	for i, p := range parts {
		names[i] = string(p)
	}
	return strings.Join(names, ", ")
}
