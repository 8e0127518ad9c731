#!/bin/sh
# Runs the agent against a real kubelet and containerd and ends with "N passed, N failed, N skipped".
#   run.sh [-run NAME] [DIRECTORY]     NAME: regular expression as for go test, for example TestRestarts
# DIRECTORY has neuron-agent and neuron-sim (else $NEURON_BIN, else build/release/bin). Needs root or sudo for the tests
# themselves, containerd, runc and a static busybox (tools/install-deps.sh --test), and Go (test/go.sh installs it).
# Where a part is missing the suite says SKIPPED and succeeds; with CI=true that fails. Exit code: 0, or 1 when a test
# failed. KUBELET_DEEP=1 tries more Topology Manager policies, KUBELET_PODS random pods per type (30), KUBELET_SEED the same again.
# KUBELET_KUBERNETES=1.37 runs that kubelet (test/cluster/kube/*.mod) instead of 1.36.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
suite="real-kubelet suite"
. "$here/../suite/suite.sh"
only=.
bin=${NEURON_BIN:-$top/build/release/bin}
while [ $# -gt 0 ]; do
  case $1 in
    -run) only=${2:?-run needs a name}; shift 2 ;;
    -h | --help) sed -n '2,8s/^# //p' "$0"; exit 0 ;;
    -*) echo "run.sh: unknown option $1" >&2; exit 2 ;;
    *) bin=$1; shift ;;
  esac
done

find_root
need_for_containers containerd ctr runc
find_go
$as_root unshare --mount --pid --fork true 2>/dev/null || missing "may not make mount and PID namespaces here"
find_programs

out=$top/build/kubelet
$as_root rm -rf "$out/logs"
mkdir -p "$out"
echo "$suite: building Kubernetes (minutes the first time, then from cache)"
build_kubernetes ${KUBELET_KUBERNETES:-}
(cd "$here" && nice -n 10 "$go" test -c -o "$out/kubelet.test" .) || missing "the suite did not build"

status=0
$as_root env NEURON_BIN="$bin" KUBELET_BIN="$programs/kubelet" KUBELET_LOGS="$out/logs" \
  KUBELET_DEEP="${KUBELET_DEEP:-}" KUBELET_SEED="${KUBELET_SEED:-}" KUBELET_PODS="${KUBELET_PODS:-}" \
  "$out/kubelet.test" -test.v -test.timeout 25m -test.run "$only" >"$out/output.txt" 2>&1 || status=$?
grep -E '^ *--- |FIGURE|_test.go:|^panic|kubelet suite' "$out/output.txt" || true
count_tests $status <"$out/output.txt" || {
  echo "$suite: whole output in $out/output.txt, logs of the programs in $out/logs" >&2
  exit 1
}
