#!/bin/sh
# Checks manifests/ (renders, strict decoding, security). UPDATE_GOLDEN=1 rewrites manifests/static.
# Needs Go, which test/go.sh finds or installs; without it says SKIPPED and exits 0, with CI=true fails.
# Ends with "N passed, N failed, N skipped".
set -eu
here=$(cd "$(dirname "$0")" && pwd)
suite=manifests
. "$here/../suite/suite.sh"
find_go
test_module
