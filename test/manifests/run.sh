#!/bin/sh
# Checks manifests/: strict decoding, the API server's validation, security, nodes, components.
# Needs Go, which test/go.sh finds or installs; without it says SKIPPED and exits 0, with CI=true fails.
# Ends with "N passed, N failed, N skipped".
set -eu
here=$(cd "$(dirname "$0")" && pwd)
suite=manifests
. "$here/../suite/suite.sh"
find_go
test_module
