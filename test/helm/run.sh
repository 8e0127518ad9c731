#!/bin/sh
# Checks the chart manifests/helm/neuron-agent with Helm as a Go module: lint, rendering, schema, and that the files rendered
# from it are up to date. `run.sh --command FILE` builds the command line of that Helm into FILE instead.
# Needs Go, which test/go.sh finds or installs; without it says SKIPPED and exits 0, with CI=true fails.
# Ends with "N passed, N failed, N skipped".
set -eu
exec </dev/null
command=""
case "${1:-}" in
  "") ;;
  --command)
    command=$(readlink -f "${2:?usage: run.sh --command FILE}") || { echo "run.sh: no folder for $2" >&2; exit 1; } ;;
  -h | --help) sed -n '2,6s/^# //p' "$0"; exit 0 ;;
  *) echo "run.sh: unknown argument $1 (usage: run.sh [--command FILE])" >&2; exit 2 ;;
esac
here=$(cd "$(dirname "$0")" && pwd)
suite=helm
. "$here/../suite/suite.sh"

if [ -n "$command" ]; then
  go=$("$top/test/go.sh") || { echo "run.sh: $go" >&2; exit 1; }
  cd "$here"
  built "" "$command" helm.sh/helm/v4/cmd/helm
  exit
fi
find_go
test_module
