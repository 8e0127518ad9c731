#!/bin/sh
# Runs the agent against a real kubelet and containerd and ends with "N passed, N failed, N skipped".
#   run.sh [-run NAME] [DIRECTORY]     NAME: regular expression as for go test, for example TestRestarts
# DIRECTORY has neuron-agent and neuron-sim (else $NEURON_BIN, else build/release/bin). Needs root or sudo for the tests
# themselves, containerd, runc and a static busybox (tools/install-deps.sh --test), and Go (test/go.sh installs it).
# Where a part is missing the suite says SKIPPED and succeeds; with CI=true that fails. Exit code: 0, or 1 when a test
# failed.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
top=$(cd "$here/../.." && pwd)
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
bin=$(cd "$bin" 2>/dev/null && pwd) || { echo "run.sh: no directory $bin: build the programs first" >&2; exit 1; }
PATH=$PATH:/usr/sbin:/sbin
export PATH

missing() {
  if [ "${CI:-}" = true ]; then
    echo "FAILED: real-kubelet suite: $1"
    echo "0 passed, 1 failed, 0 skipped"
    exit 1
  fi
  echo "SKIPPED: real-kubelet suite: $1"
  echo "0 passed, 0 failed, 1 skipped"
  exit 0
}

as_root=
if [ "$(id -u)" != 0 ]; then
  as_root=sudo
  sudo true 2>/dev/null || missing "needs root or sudo"
fi
parts=
for program in containerd ctr runc; do
  command -v $program >/dev/null || parts="$parts $program,"
done
# Debian's plain busybox needs shared libraries, which the image does not have.
{ [ -x /bin/busybox ] && ! ldd /bin/busybox >/dev/null 2>&1; } || parts="$parts a static busybox,"
[ -z "$parts" ] || missing "not installed:${parts%,} (tools/install-deps.sh --test installs them)"
go=$("$top/test/go.sh") || missing "$go"
$as_root unshare --mount --pid --fork true 2>/dev/null || missing "may not make mount and PID namespaces here"
$as_root test -w /sys/fs/cgroup || missing "/sys/fs/cgroup is not writable"
[ -x "$bin/neuron-agent" ] && [ -x "$bin/neuron-sim" ] ||
  { echo "run.sh: neuron-agent or neuron-sim is not in $bin: build them first" >&2; exit 1; }

out=$top/build/kubelet
$as_root rm -rf "$out/logs"
mkdir -p "$out"
echo "real-kubelet suite: building the kubelet (minutes the first time, then from cache)"
export CGO_ENABLED=0
(cd "$here" && nice -n 10 "$go" build -ldflags "-s -w" -o "$out/kubelet" ./kubelet) ||
  missing "the kubelet did not build (module download needs a network)"
(cd "$here" && nice -n 10 "$go" test -c -o "$out/kubelet.test" .) || missing "the suite did not build"

status=0
$as_root env NEURON_BIN="$bin" KUBELET_BIN="$out/kubelet" KUBELET_LOGS="$out/logs" \
  KUBELET_SEED="${KUBELET_SEED:-}" KUBELET_PODS="${KUBELET_PODS:-}" \
  "$out/kubelet.test" -test.v -test.timeout 25m -test.run "$only" >"$out/output.txt" 2>&1 || status=$?
grep -E '^ *--- |FIGURE|_test.go:|^panic|kubelet suite' "$out/output.txt" || true

# Only leaves are counted: a test with subtests is their sum.
awk -v status="$status" '
  /^ *--- (PASS|FAIL|SKIP): / { result[$3] = $2; names[++n] = $3 }
  END {
    for (i = 1; i <= n; i++) {
      parent = names[i]
      while (sub("/[^/]*$", "", parent)) inner[parent] = 1
    }
    for (i = 1; i <= n; i++) if (!(names[i] in inner)) count[result[names[i]]]++
    for (i = 1; i <= n; i++)  # failed itself, with every part passed
      if (names[i] in inner && result[names[i]] == "FAIL" && !count["FAIL:"]) count["FAIL:"] = 1
    if (status != 0 && !count["FAIL:"]) count["FAIL:"] = 1
    if (n == 0) { print "no test has a name like that"; count["FAIL:"] = 1 }
    printf "%d passed, %d failed, %d skipped\n", count["PASS:"], count["FAIL:"], count["SKIP:"]
  }' "$out/output.txt"
grep -q '^ *--- ' "$out/output.txt" || status=1
if [ "$status" != 0 ]; then
  echo "real-kubelet suite: whole output in $out/output.txt, logs of the programs in $out/logs" >&2
  exit 1
fi
