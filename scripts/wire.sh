#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Writes the Go code of internal/wire/wirepb/hub.proto beside it. protoc comes with PyPI's
# grpcio-tools; its plugins are built from the versions below. The code is committed, so
# only a change of the format needs this script.
set -eu
cd "$(dirname "$0")/.."
tools=$PWD/build/wire
mkdir -p "$tools"
[ -x "$tools/venv/bin/python" ] || { python3 -m venv "$tools/venv" && "$tools/venv/bin/pip" -q install grpcio-tools; }
GOBIN=$tools go install google.golang.org/protobuf/cmd/protoc-gen-go@v1.36.11
GOBIN=$tools go install connectrpc.com/connect/cmd/protoc-gen-connect-go@v1.20.0
PATH=$tools:$PATH "$tools/venv/bin/python" -m grpc_tools.protoc -I internal/wire/wirepb \
	--go_out=internal/wire/wirepb --go_opt=paths=source_relative \
	--connect-go_out=internal/wire/wirepb --connect-go_opt=paths=source_relative,package_suffix,simple \
	hub.proto
