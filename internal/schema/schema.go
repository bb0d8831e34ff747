// SPDX-License-Identifier: Apache-2.0

// Package schema reads and writes values that have a versioned wire form: JSON
// with a "schema" field, strict in both directions.
//
//	bytes ──Decode──▶ newer? ─▶ unknown field, trailing text? ─▶ Validate ─▶ value
//
// It is NOT for: forms that people write (YAML), or values without a version.
package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// ErrNewer is wrapped when something was written by a newer homenode.
var ErrNewer = errors.New("written by a newer homenode")

// Valid is a value that knows what of it cannot be.
type Valid interface{ Validate() error }

// Decode reads a value called what. A schema above most, an unknown field,
// trailing text, and what cannot be are refused; on error the value is zero.
func Decode[T Valid](data []byte, what string, most int) (T, error) {
	var zero T
	var head struct {
		Schema int `json:"schema"`
	}
	if err := json.Unmarshal(data, &head); err != nil { // also finds trailing text
		return zero, fmt.Errorf("parse %s: %w", what, err)
	}
	if head.Schema > most { // before its new fields are called unknown
		return zero, fmt.Errorf("parse %s: schema %d, this homenode reads up to %d: %w", what, head.Schema, most, ErrNewer)
	}
	v, err := strict[T](data)
	if err == nil {
		err = v.Validate()
	}
	if err != nil {
		return zero, fmt.Errorf("parse %s: %w", what, err)
	}
	return v, nil
}

func strict[T any](data []byte) (T, error) {
	var v, zero T
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&v); err != nil {
		return zero, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return zero, errors.New("text after it")
	}
	return v, nil
}

// Encode writes the wire form, one line without a newline, that a terminal may show; what
// Decode would refuse is refused here.
func Encode(v Valid, what string) ([]byte, error) {
	if err := v.Validate(); err != nil {
		return nil, fmt.Errorf("write %s: %w", what, err)
	}
	var line bytes.Buffer
	if err := NewEncoder(&line).Encode(v); err != nil {
		return nil, fmt.Errorf("write %s: %w", what, err)
	}
	return bytes.TrimSuffix(line.Bytes(), []byte("\n")), nil
}
