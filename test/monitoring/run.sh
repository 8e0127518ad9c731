#!/bin/sh
# Holds alerts, dashboard and metrics against a real Prometheus that scrapes the agent on a busy simulated node; ends with
# "N passed, N failed, N skipped".
#   run.sh [--target HOST:PORT] [DIRECTORY]
# DIRECTORY has neuron-agent and neuron-sim (else $NEURON_BIN, else build/release/bin). --target: query another agent's /metrics
# (plain HTTP) instead. Needs Debian's prometheus (tools/install-deps.sh --test); without it says SKIPPED and exits 0, with CI=true
# fails.
set -eu
exec </dev/null

here=$(cd "$(dirname "$0")" && pwd)
suite=monitoring
. "$here/../suite/suite.sh"
bin=${NEURON_BIN:-$top/build/release/bin}
target=
while [ $# -gt 0 ]; do
  case $1 in
    --target) target=${2:?run.sh: --target needs HOST:PORT}; shift 2 ;;
    -h | --help) sed -n '2,7s/^# \{0,1\}//p' "$0"; exit 0 ;;
    -*) echo "run.sh: unknown option $1 (--help lists them)" >&2; exit 2 ;;
    *) bin=$1; shift ;;
  esac
done
for program in prometheus promtool openssl; do
  command -v $program >/dev/null || missing "not installed: $program (tools/install-deps.sh --test installs it)"
done
[ -n "$target" ] || find_programs
exec python3 "$here/monitoring_test.py" "$top" "${bin:-}" "$target"
