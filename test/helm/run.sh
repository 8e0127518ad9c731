#!/bin/bash
# Checks the chart manifests/helm/neuron-agent with Helm as a Go module: lint, rendering, schema, sameness with
# manifests/static. `run.sh --command FILE` builds the command line of that Helm into FILE instead.
# Needs Go, which test/go.sh finds or installs; without it says SKIPPED and exits 0, with CI=true fails.
# Ends with "N passed, N failed, N skipped".
set -u
exec < /dev/null
command=""
case "${1:-}" in
  "") ;;
  --command)
    command=$(readlink -f "${2:?usage: run.sh --command FILE}") || { echo "run.sh: no folder for $2" >&2; exit 1; } ;;
  -h | --help) sed -n '2,6s/^# //p' "$0"; exit 0 ;;
  *) echo "run.sh: unknown argument $1 (usage: run.sh [--command FILE])" >&2; exit 2 ;;
esac
cd "$(dirname "$(readlink -f "$0")")" || exit 1

if ! go=$(../go.sh); then
  if [ -n "$command" ]; then
    echo "run.sh: $go" >&2
    exit 1
  fi
  if [ "${CI:-}" = true ]; then
    echo "FAILED: helm: $go"
    echo "0 passed, 1 failed, 0 skipped"
    exit 1
  fi
  echo "SKIPPED: helm: $go"
  echo "0 passed, 0 failed, 1 skipped"
  exit 0
fi
PATH=$(dirname "$go"):$PATH
if [ -n "$command" ]; then
  CGO_ENABLED=0 exec go build -trimpath -ldflags '-s -w' -o "$command" helm.sh/helm/v4/cmd/helm
fi

log=$(mktemp) || exit 1
trap 'rm -f "$log"' EXIT
(go vet ./... && go test -count=1 -v ./...) > "$log" 2>&1
status=$?
passed=$(grep -c '^--- PASS' "$log")
failed=$(grep -c '^--- FAIL' "$log")
if [ "$status" -ne 0 ]; then
  cat "$log"
  [ "$failed" -gt 0 ] || failed=1
else
  grep '^--- PASS' "$log"
fi
echo "$passed passed, $failed failed, 0 skipped"
exit "$status"
