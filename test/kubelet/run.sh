#!/bin/sh
# Runs the agent against a real kubelet and containerd and ends with "N passed, N failed, N skipped".
#   run.sh [-run NAME] [DIRECTORY]     NAME: regular expression as for go test, for example TestRestarts
# DIRECTORY has neuron-agent and neuron-sim (else $NEURON_BIN, else build/release/bin). Needs root.
# Where Go, containerd or another part is missing the suite says SKIPPED and succeeds; with CI=true Debian's
# parts are installed and anything that still is missing fails the run. Exit code: 0, or 1 when a test failed.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
top=$(cd "$here/../.." && pwd)
only=.
bin=${NEURON_BIN:-$top/build/release/bin}
while [ $# -gt 0 ]; do
  case $1 in
    -run) only=${2:?-run needs a name}; shift 2 ;;
    -h | --help) sed -n '2,7s/^# //p' "$0"; exit 0 ;;
    -*) echo "run.sh: unknown option $1" >&2; exit 2 ;;
    *) bin=$1; shift ;;
  esac
done
bin=$(cd "$bin" 2>/dev/null && pwd) || { echo "run.sh: no directory $bin: build the programs first" >&2; exit 1; }
PATH=$PATH:/usr/local/go/bin:/usr/sbin:/sbin
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

debian_parts() {
  absent=
  command -v containerd >/dev/null && command -v ctr >/dev/null || absent="$absent containerd"
  command -v runc >/dev/null || absent="$absent runc"
  runs_alone /bin/busybox || absent="$absent busybox-static"
  echo "$absent"
}

# Debian's plain busybox needs shared libraries, which the image does not have.
runs_alone() {
  empty=$(mktemp -d)
  alone=0
  cp "$1" "$empty/busybox" 2>/dev/null && chroot "$empty" /busybox true 2>/dev/null || alone=1
  rm -rf "$empty"
  return $alone
}

[ "$(id -u)" = 0 ] || missing "needs root"
parts=$(debian_parts)
if [ -n "$parts" ] && [ "${CI:-}" = true ] && command -v apt-get >/dev/null; then
  apt-get update -qq || true
  # shellcheck disable=SC2086 # a list
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $parts >/dev/null || true
  parts=$(debian_parts)
fi
[ -z "$parts" ] || missing "Debian packages not installed:$parts"
command -v go >/dev/null || missing "Go >= 1.26 not found"
version=$(cd "$here" && go env GOVERSION 2>/dev/null) || missing "Go >= 1.26 not found"
case $version in
  go1.2[6-9]* | go1.[3-9][0-9]* | go[2-9]*) ;;
  *) missing "Go >= 1.26 needed, found ${version:-none}" ;;
esac
unshare --mount --pid --fork true 2>/dev/null || missing "may not make mount and PID namespaces here"
[ -w /sys/fs/cgroup ] || missing "/sys/fs/cgroup is not writable"
[ -x "$bin/neuron-agent" ] && [ -x "$bin/neuron-sim" ] ||
  { echo "run.sh: neuron-agent or neuron-sim is not in $bin: build them first" >&2; exit 1; }

out=$top/build/kubelet
rm -rf "$out/logs"
mkdir -p "$out"
echo "real-kubelet suite: building the kubelet (minutes the first time, then from cache)"
export CGO_ENABLED=0
(cd "$here" && nice -n 10 go build -ldflags "-s -w" -o "$out/kubelet" ./kubelet) ||
  missing "the kubelet did not build (module download needs a network)"
(cd "$here" && nice -n 10 go test -c -o "$out/kubelet.test" .) || missing "the suite did not build"

status=0
NEURON_BIN=$bin KUBELET_BIN=$out/kubelet KUBELET_LOGS=$out/logs \
  "$out/kubelet.test" -test.v -test.timeout 10m -test.run "$only" >"$out/output.txt" 2>&1 || status=$?
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
