#!/bin/sh
# Holds `neuron-agent catalogue` against Karpenter's own scheduling simulation (Go; no cluster): NodeOverlays, slices as its provider would
# know them, and which instance type it chooses for pods; ends with "N passed, N failed, N skipped".
#   run.sh [DIRECTORY]
# DIRECTORY has neuron-agent and neuron-sim (else $NEURON_BIN, else build/release/bin). Needs Go (test/go.sh installs it), which fetches the
# one that go.mod names if it is older; without it says SKIPPED and exits 0, with CI=true fails.
set -eu
exec </dev/null

here=$(cd "$(dirname "$0")" && pwd)
suite=karpenter
. "$here/../suite/suite.sh"
bin=${NEURON_BIN:-$top/build/release/bin}
case ${1:-} in
  "") ;;
  -h | --help) sed -n '2,7s/^# \{0,1\}//p' "$0"; exit 0 ;;
  -*) echo "run.sh: unknown option $1 (--help lists them)" >&2; exit 2 ;;
  *) bin=$1 ;;
esac
find_programs
export NEURON_BIN="$bin"
find_go
export GOTOOLCHAIN=auto
(cd "$here" && "$go" mod download) >/dev/null 2>&1 || missing "Karpenter's modules, or the Go that they ask for (needs a network)"
test_module
