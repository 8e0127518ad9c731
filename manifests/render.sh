#!/bin/sh
# Writes every file below manifests/ that is rendered or copied from the chart helm/neuron-agent (test/helm/rendered_test.go lists them).
# Needs Go, which test/go.sh finds or installs.   usage: manifests/render.sh
set -eu
top=$(cd "$(dirname "$0")/.." && pwd)
go=$("$top/test/go.sh") || { echo "render.sh: $go" >&2; exit 1; }
cd "$top/test/helm"
UPDATE_GOLDEN=1 CGO_ENABLED=0 exec "$go" test -count=1 -run '^TestRenderedFiles$' .
