// SPDX-License-Identifier: Apache-2.0

// Package yamlfile decodes the YAML files that people write: the agent's configuration,
// settings, shapes, mixes and scenarios. It says where in a file something is wrong.
//
//	text ──Parse──▶ Document ──Decode──▶ value ──▶ its checks ──Wrong(path)──▶ error: file, line, excerpt
//
// It is strict: an unknown or repeated name, a number in quotes, a fraction where a whole
// number belongs, and a duration without a unit are errors. Decision 0039 says which
// library reads the YAML, and why the values are read here.
//
// It is NOT for: checking what a value means, or reading JSON (schema).
package yamlfile
