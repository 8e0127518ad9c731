#!/bin/sh
# Holds ResourceSlices and claims against the API server's own validation and the scheduler's own allocator (Go; no cluster);
# ends with "N passed, N failed, N skipped".
#   run.sh [--steps N] [--seed N] [DIRECTORY]
# --steps: random claims for each kind of node and partitions (250)    --seed: draws others
# DRA_QUESTIONS=N asks kubectl-neuron about so many pods for each kind of pool (25).
# DIRECTORY has neuron-agent, neuron-sim and kubectl-neuron (else $NEURON_BIN, else build/release/bin). Needs Go (test/go.sh installs it);
# without it says SKIPPED and exits 0, with CI=true fails. The benchmark is no part of it: docs/dra-partitions.md.
set -eu
exec </dev/null

here=$(cd "$(dirname "$0")" && pwd)
suite=dra
. "$here/../suite/suite.sh"
bin=${NEURON_BIN:-$top/build/release/bin}
while [ $# -gt 0 ]; do
  case $1 in
    --steps | --seed)
      [ $# -gt 1 ] || { echo "run.sh: $1 needs a value" >&2; exit 2; }
      case $2 in
        *[!0-9]* | "") echo "run.sh: $1 cannot be \"$2\"" >&2; exit 2 ;;
      esac
      [ "$1" = --steps ] && export DRA_STEPS="$2" || export DRA_SEED="$2"
      shift 2
      ;;
    -h | --help) sed -n '2,8s/^# \{0,1\}//p' "$0"; exit 0 ;;
    -*) echo "run.sh: unknown option $1 (--help lists them)" >&2; exit 2 ;;
    *) bin=$1; shift ;;
  esac
done
find_programs
export NEURON_BIN="$bin"
find_go
test_module
