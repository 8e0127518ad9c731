#!/bin/bash
# Checks manifests/ (renders, strict decoding, security). UPDATE_GOLDEN=1 rewrites manifests/static.
# Needs Go, which test/go.sh finds or installs; without it says SKIPPED and exits 0, with CI=true fails.
# Ends with "N passed, N failed, N skipped".
set -u
cd "$(dirname "$(readlink -f "$0")")" || exit 1

if ! go=$(../go.sh); then
  if [ "${CI:-}" = true ]; then
    echo "FAILED: manifests: $go"
    echo "0 passed, 1 failed, 0 skipped"
    exit 1
  fi
  echo "SKIPPED: manifests: $go"
  echo "0 passed, 0 failed, 1 skipped"
  exit 0
fi
PATH=$(dirname "$go"):$PATH

log=$(mktemp) || exit 1
trap 'rm -f "$log"' EXIT
go vet ./... && go test -count=1 -v ./... > "$log" 2>&1
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
