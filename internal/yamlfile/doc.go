// SPDX-License-Identifier: Apache-2.0

// Package yamlfile says where in a YAML file that people write something is wrong.
//
//	bytes ──Body──▶ node ──▶ value ──▶ what cannot be ──At(path)──▶ Error: file, line, excerpt
//
// It is NOT for: reading values (the YAML library), or knowing what cannot be.
package yamlfile
