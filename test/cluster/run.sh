#!/bin/sh
# Runs the agent in a real cluster of simulated nodes and ends with "N passed, N failed, N skipped".
#   run.sh [-run NAME] [--stand-in] [DIRECTORY]
#   -run NAME     regular expression as for go test, for example TestDefaultManifest
#   --stand-in    instead of built images one of the programs in DIRECTORY, for a quick look: proves nothing of the images
# DIRECTORY has neuron-agent and neuron-sim (else $NEURON_BIN, else build/release/bin). The image archives are in $IMAGES (else
# build/image); where there are none, tools/image.sh makes them. Needs root or sudo for the tests themselves; containerd, runc,
# Debian's containernetworking-plugins, iproute2 and a static busybox (tools/install-deps.sh --test); and Go (test/go.sh
# installs it). Where a part is missing the suite says SKIPPED and succeeds; with CI=true that fails.
# CLUSTER_SHARDS clusters run at the same time, each with its part of the tests; with 1 nothing disturbs what is measured. Default:
# 2, or 3 where the kernel allows root 256 inotify instances, of which each cluster takes 6 and each node 9.
# CLUSTER_KUBERNETES="1.37 1.36" runs another Kubernetes (kube/*.mod) than 1.36: the first is the cluster's, further ones are for the scenarios
# of several versions. CLUSTER_RUNTIME=containerd1.7 or crio runs that instead of containerd 2; CRI-O needs
# Debian's packages conmon, skopeo, gcc, pkg-config and libseccomp-dev.
# CLUSTER_QUEUEING="volcano mpi-operator" builds these queueing systems (queueing/*/go.mod) and runs their tests. Not set: those whose tests
# -run names, and without -run jobset alone.
# CLUSTER_DEEP=1 runs the long scenarios too (half an hour more). CLUSTER_FLEET=150 runs TestFleet with as many agents of each mode.
# CLUSTER_QUESTIONS=1000 asks kubectl neuron about so many pods, in all modes together.
# CHAOS_MINUTES makes TestChaos as long as that, CHAOS_SEED draws the same faults again, CHAOS_SLOWER multiplies its bounds. Exit
# code: 0, or 1 when a test failed.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
suite="cluster suite"
. "$here/../suite/suite.sh"
only=.
bin=${NEURON_BIN:-$top/build/release/bin}
images=${IMAGES:-$top/build/image}
shards=2
[ "$(cat /proc/sys/fs/inotify/max_user_instances)" -lt 256 ] || shards=3
shards=${CLUSTER_SHARDS:-$shards}
stand_in=no
limit=50m
[ "${CLUSTER_DEEP:-}" != 1 ] || limit=120m
[ -z "${CHAOS_MINUTES:-}" ] || limit=$((120 + 3 * CHAOS_MINUTES))m
while [ $# -gt 0 ]; do
  case $1 in
    -run) only=${2:?-run needs a name}; shift 2 ;;
    --stand-in) stand_in=yes; shift ;;
    -h | --help) sed -n '2,/^set -eu/{/^set/!s/^# //p}' "$0"; exit 0 ;;
    -*) echo "run.sh: unknown option $1 (usage: run.sh [-run NAME] [--stand-in] [DIRECTORY])" >&2; exit 2 ;;
    *) bin=$1; shift ;;
  esac
done

find_root
need_for_containers containerd runc ip nsenter setpriv /usr/lib/cni/bridge /usr/lib/cni/host-local /usr/lib/cni/loopback
if [ "${CLUSTER_RUNTIME:-}" = crio ]; then
  parts=
  for program in conmon skopeo gcc pkg-config; do command -v "$program" >/dev/null || parts="$parts $program"; done
  pkg-config --exists libseccomp 2>/dev/null || parts="$parts libseccomp-dev"
  [ -z "$parts" ] || missing "not installed for CRI-O, packages of Debian:$parts"
fi
find_go
$as_root unshare --mount --pid --net --fork sh -c 'ip link add br0 type bridge && ip link add port0 type veth' 2>/dev/null ||
  missing "may not make mount, PID and network namespaces with a bridge and veth here"
find_programs

has_archives() { ls "$images"/neuron-agent-[0-9]*.tar "$images"/neuron-agent-sim-[0-9]*.tar >/dev/null 2>&1; }
if [ "$stand_in" = yes ]; then
  echo "$suite: NOT the images but a stand-in made of $bin"
  images=
elif ! has_archives; then
  echo "$suite: no image archives in $images: building them with tools/image.sh"
  "$top/tools/image.sh" --output "$images" ||
    missing "tools/image.sh made no image archives. Run test/image/run.sh, which needs no registry, or see --stand-in"
fi

out=$top/build/cluster
$as_root rm -rf "$out/logs"
mkdir -p "$out/containerd2"
echo "$suite: building Kubernetes, etcd and containerd (minutes the first time, then from cache)"
kubernetes=${CLUSTER_KUBERNETES:-}
for minor in ${kubernetes:-""}; do build_kubernetes $minor; done
# build_containerd MODULES MODULE DIRECTORY PROGRAM...
build_containerd() {
  modules=$1 containerd=$2 programs=$out/$3
  shift 3
  version=$(cd "$here/containerd" && "$go" list -modfile "$modules" -m -f '{{.Version}}' "$containerd") || missing "containerd's module (needs a network)"
  for name; do
    (cd "$here/containerd" && export GOFLAGS="-modfile=$modules" && built "-X $containerd/version.Version=$version" "$programs/$name" "$containerd/cmd/$name") ||
      missing "containerd did not build (module download needs a network)"
  done
}
build_containerd go.mod github.com/containerd/containerd/v2 containerd2 containerd containerd-shim-runc-v2 ctr
# build_crio: in its own folder of the module cache, as build_queueing does, and pinns, with which it makes namespaces. cgo is for seccomp.
build_crio() {
  module=github.com/cri-o/cri-o
  folder=$(cd "$here/crio" && "$go" mod download "$module" && "$go" list -m -f '{{.Dir}}' "$module") || missing "the module $module (needs a network)"
  mkdir -p "$out/crio"
  tags=seccomp,containers_image_openpgp,exclude_graphdriver_btrfs,exclude_graphdriver_devicemapper
  (cd "$folder" && export CGO_ENABLED=1 GOFLAGS="-mod=readonly -tags=$tags" && built "" "$out/crio/crio" ./cmd/crio &&
    gcc -std=c99 -O2 -o "$out/crio/pinns" pinns/src/*.c) || missing "CRI-O did not build (module download needs a network)"
}
case ${CLUSTER_RUNTIME:-} in
  "") ;;
  containerd1.7) build_containerd 1.7.mod github.com/containerd/containerd containerd1.7 containerd containerd-shim-runc-v2 ;;
  crio) build_crio ;;
  *) echo "run.sh: CLUSTER_RUNTIME is containerd1.7, crio or not set" >&2; exit 2 ;;
esac
[ -x "$out/helm" ] && [ "$out/helm" -nt "$top/test/helm/go.mod" ] || "$top/test/helm/run.sh" --command "$out/helm" ||
  missing "helm did not build (module download needs a network)"
(cd "$here" && built "" "$out/runtime" ./runtime && nice -n 10 "$go" test -c -ldflags "-s -w" -o "$out/cluster.test" . &&
  nice -n 10 "$go" test -c -ldflags "-s -w" -o "$out/judge.test" ./judge &&
  nice -n 10 "$go" test -c -ldflags "-s -w" -o "$out/parts.test" ./cluster &&
  nice -n 10 "$go" test -c -ldflags "-s -w" -o "$out/extender.test" ./extender &&
  nice -n 10 "$go" test -c -ldflags "-s -w" -o "$out/cores.test" ../suite/cores) || missing "the suite did not build"
(cd "$here" && built "" "$out/awsplugin" ./awsplugin) || missing "the stand-in for AWS's plugins did not build"

# The tests by shard in $out/shard.N: longest first, each to the shard with the least to do. durations.txt has the seconds of each, and of
# those that are longer with CLUSTER_DEEP=1 these as well; 20 s where it has none.
rm -rf "$out"/shard.* "$out"/output.* "$out/failed"
"$out/cluster.test" -test.list "$(echo "$only" | sed 's,/[^|]*,,g')" | grep '^Test' | sort >"$out/tests" || true

# build_queueing SYSTEM: its programs from its own folder in the module cache, with the versions of its own go.mod; and, named as the
# system, the one that stands beside our go.mod, if there is one; and the Python packages of requirements.txt.
build_queueing() {
  pins=$here/queueing/$1 into=$out/queueing/$1
  [ -e "$pins/go.mod" ] || { echo "run.sh: no queueing system $1 in queueing/" >&2; exit 2; }
  mkdir -p "$into"
  module=$(sed -n 's/^require \([^ ]*\) .*/\1/p' "$pins/go.mod")
  folder=$(cd "$pins" && "$go" mod download "$module" && "$go" list -m -f '{{.Dir}}' "$module") || missing "the module $module (needs a network)"
  ln -sfn "$folder" "$into/module"
  sed -n 's/^require \([^(]\)/\1/p' "$pins/go.mod" >"$into/version"
  for package in $(sed -n 's/^tool //p' "$pins/go.mod"); do
    (cd "$folder" && export GOFLAGS=-mod=readonly && built "" "$into/${package##*/}" "$package") || missing "$package did not build (module download needs a network)"
  done
  [ ! -e "$pins/main.go" ] || (cd "$pins" && built "" "$into/$1" .) || missing "$1 did not build (module download needs a network)"
  [ ! -e "$pins/requirements.txt" ] || install_python
}
install_python() {
  if ! cmp -s "$pins/requirements.txt" "$into/python/requirements.txt"; then
    python=/usr/bin/python3 # Debian's: another on PATH may be without venv
    [ -x "$python" ] || python=python3
    rm -rf "$into/python"
    { "$python" -m venv "$into/python" && "$into/python/bin/python" -m pip install --quiet --retries 1 -r "$pins/requirements.txt"; } >&2 ||
      missing "Python packages of $pins/requirements.txt (needs python3-venv and a network)"
    cp "$pins/requirements.txt" "$into/python/"
  fi
  ln -sfn "$into/python/bin/torchx" "$out/torchx"
}
queueing=${CLUSTER_QUEUEING:-}
for pins in "$here"/queueing/*/go.mod; do
  pins=${pins%/go.mod} system=${pins##*/}
  [ -z "${CLUSTER_QUEUEING:-}" ] && grep -qi "^Test.*$(echo "$system" | tr -d -)" "$out/tests" || continue
  if [ "$only" != . ] || [ "$system" = jobset ]; then queueing="$queueing $system"; fi
done
for system in $queueing; do build_queueing "$system"; done

awk -v deep="${CLUSTER_DEEP:-}" 'NR == FNR { seconds[$1] = deep == 1 && NF > 2 ? $3 : $2; next } { print ($1 in seconds) ? seconds[$1] : 20, $1 }' "$here/durations.txt" "$out/tests" |
  sort -k1,1nr -k2 | awk -v shards="$shards" -v out="$out/shard." '{
    least = 1
    for (i = 2; i <= shards; i++) if (sum[i] < sum[least]) least = i
    sum[least] += $1
    print $2 > (out least)
  }'

# run_shard N: all tests but those of the others, so that a test in no list runs as well.
run_shard() {
  others=$(grep -vxFf "$out/shard.$1" "$out/tests" | paste -sd '|' -)
  $as_root env NEURON_BIN="$bin" IMAGES="$images" CLUSTER_TOOLS="$out" CLUSTER_TREE="$top" CLUSTER_LOGS="$out/logs/$1" \
    CLUSTER_KUBERNETES="$kubernetes" CLUSTER_RUNTIME="${CLUSTER_RUNTIME:-}" \
    CLUSTER_QUEUEING="$queueing" CLUSTER_DEEP="${CLUSTER_DEEP:-}" CLUSTER_FLEET="${CLUSTER_FLEET:-}" CLUSTER_QUESTIONS="${CLUSTER_QUESTIONS:-}" \
    CHAOS_MINUTES="${CHAOS_MINUTES:-}" CHAOS_SEED="${CHAOS_SEED:-}" CHAOS_SLOWER="${CHAOS_SLOWER:-}" \
    "$out/cluster.test" -test.v -test.parallel 8 -test.timeout "$limit" -test.run "$only" -test.skip "^($others)\$" 2>&1 || echo 1 >"$out/failed"
}

show() { grep --line-buffered -E '^ *--- |FIGURE|_test.go:|^panic|cluster suite| chaos: ' | sed -u "s/^/$1/" || true; }
for fast in judge parts extender cores; do "$out/$fast.test" -test.v -test.run "$only" 2>&1 || echo 1 >"$out/failed"; done |
  tee "$out/output.fast" | show ""
for list in "$out"/shard.*; do
  [ -e "$list" ] || continue
  shard=${list##*.}
  run_shard "$shard" | tee "$out/output.$shard" | show "$shard: " &
done
wait
cat "$out"/output.* >"$out/output.txt"
cat "$out"/output.[0-9]* 2>/dev/null | sed -n 's/^=== RUN   \(Test[A-Za-z0-9_]*\)$/\1/p' | sort | diff "$out/tests" - >"$out/differs" || {
  echo "$suite: tests that ran in no shard (<) or in several (>):"
  cat "$out/differs"
  echo 1 >"$out/failed"
}
status=0
[ ! -e "$out/failed" ] || status=1
count_tests $status <"$out/output.txt" || {
  echo "$suite: whole output in $out/output.txt, logs of the programs in $out/logs" >&2
  exit 1
}
