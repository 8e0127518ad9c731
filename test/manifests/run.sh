#!/bin/bash
# Checks manifests/ (renders, strict decoding, security). UPDATE_GOLDEN=1 rewrites manifests/static.
# Needs Go 1.26; without it says SKIPPED and exits 0, with CI=true fails. Ends with "N passed, N failed, N skipped".
set -u
cd "$(dirname "$(readlink -f "$0")")" || exit 1

PATH=$PATH:/usr/local/go/bin
without_go() {
  echo "SKIPPED: manifests: $1"
  if [ "${CI:-}" = true ]; then
    echo "CI=true: nothing may be skipped; install Go 1.26 or newer" >&2
    echo "0 passed, 1 failed, 0 skipped"
    exit 1
  fi
  echo "0 passed, 0 failed, 1 skipped"
  exit 0
}

command -v go > /dev/null || without_go "go is not installed (1.26 or newer is needed)"
version=$(go env GOVERSION 2> /dev/null)
version=${version#go}
major=${version%%.*}
minor=${version#*.}
minor=${minor%%[!0-9]*}
if [ "${major:-0}" -lt 1 ] || { [ "$major" -eq 1 ] && [ "${minor:-0}" -lt 26 ]; }; then
  without_go "go $version is too old (1.26 or newer is needed)"
fi

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
