# What the run.sh of the Go suites have in common; sourced by sh and bash. The one that sources it has set suite, its name in
# messages, and here, its folder.
top=$(cd "$here/../.." && pwd)
export PATH="$PATH:/usr/sbin:/sbin" CGO_ENABLED=0 # all suites without cgo: what they share is compiled once

# missing WHY: a part of the machine is missing.
missing() {
  if [ "${CI:-}" = true ]; then
    echo "FAILED: $suite: $1"
    echo "0 passed, 1 failed, 0 skipped"
    exit 1
  fi
  echo "SKIPPED: $suite: $1"
  echo "0 passed, 0 failed, 1 skipped"
  exit 0
}

# Makes $bin absolute and looks for the programs under test.
find_programs() {
  bin=$(cd "$bin" 2>/dev/null && pwd) || { echo "run.sh: no directory $bin: build the programs first" >&2; exit 1; }
  for program in neuron-agent neuron-sim; do
    [ -x "$bin/$program" ] || { echo "run.sh: $program is not in $bin: build it first" >&2; exit 1; }
  done
}

find_go() { go=$("$top/test/go.sh") || missing "$go"; }

# Sets as_root to what a command is run as root with.
find_root() {
  as_root=
  [ "$(id -u)" != 0 ] || return 0
  as_root=sudo
  sudo true 2>/dev/null || missing "needs root or sudo"
}

# need_for_containers PROGRAM-OR-PATH...: these, and a static busybox for their image; Debian's plain one needs
# shared libraries.
need_for_containers() {
  parts=
  for program; do
    command -v "$program" >/dev/null || parts="$parts $program,"
  done
  { [ -x /bin/busybox ] && ! ldd /bin/busybox >/dev/null 2>&1; } || parts="$parts a static busybox,"
  [ -z "$parts" ] || missing "not installed:${parts%,} (tools/install-deps.sh --test installs them)"
  $as_root test -w /sys/fs/cgroup || missing "/sys/fs/cgroup is not writable"
}

# built LDFLAGS FILE PACKAGE, in the folder of its module.
built() { nice -n 10 "$go" build -ldflags "-s -w $1" -o "$2" "$3"; }

# build_kubernetes [MINOR]: builds the programs of a control plane and of a node, one binary, into build/cluster: minutes the first time,
# then from cache. MINOR: another version than that of test/go.mod, with test/cluster/kube/MINOR.mod, into build/cluster/MINOR.
build_kubernetes() {
  modules=go.mod programs=$top/build/cluster
  if [ -n "${1:-}" ] && [ -e "$top/test/cluster/kube/$1.mod" ]; then
    modules=cluster/kube/$1.mod programs=$programs/$1
  elif [ -n "${1:-}" ] && ! grep -q "k8s.io/kubernetes v$1\." "$top/test/go.mod"; then
    echo "run.sh: no Kubernetes $1: test/cluster/kube/pin.sh adds one" >&2
    exit 2
  fi
  version=$(cd "$top/test" && "$go" list -modfile "$modules" -m -f '{{.Version}}' k8s.io/kubernetes) || missing "Kubernetes' module (needs a network)"
  mkdir -p "$programs"
  minor=${version#*.} stamp=k8s.io/component-base/version
  # One after another: the kubelet's suite runs beside the cluster's.
  (cd "$top/test" && export GOFLAGS="-modfile=$modules" && flock 9 && built "-X $stamp.gitVersion=$version -X $stamp.gitMajor=1 -X $stamp.gitMinor=${minor%%.*}" \
    "$programs/kube" ./cluster/kube) 9> "$programs/kube.lock" || missing "Kubernetes ${1:-} did not build (module download needs a network)"
  for name in kube-apiserver kube-controller-manager kube-scheduler kubelet kubectl etcd; do ln -sf kube "$programs/$name"; done
  [ -z "${1:-}" ] || [ "$modules" != go.mod ] || ln -sfn . "$programs/$1"
}

# Vets and tests the module in $here and prints and counts its tests.
test_module() {
  log=$(mktemp) || exit 1
  trap 'rm -f "$log"' EXIT
  status=0
  (cd "$here" && "$go" vet ./... && "$go" test -count=1 -v ./...) >"$log" 2>&1 || status=$?
  if [ "$status" = 0 ]; then grep '^--- PASS' "$log" || true; else cat "$log"; fi
  grep '^--- ' "$log" | count_tests "$status"
}

# count_tests STATUS: reads what go test said, prints "N passed, N failed, N skipped" and fails if one failed or STATUS is not 0.
# Only leaves are counted: a test with subtests is their sum.
count_tests() {
  awk -v status="$1" '
    /^ *--- (PASS|FAIL|SKIP): / { result[$3] = $2; names[++n] = $3 }
    END {
      for (i = 1; i <= n; i++) {
        parent = names[i]
        while (sub("/[^/]*$", "", parent)) inner[parent] = 1
      }
      for (i = 1; i <= n; i++) if (!(names[i] in inner)) count[result[names[i]]]++
      for (i = 1; i <= n; i++)  # failed itself, with every part passed
        if (names[i] in inner && result[names[i]] == "FAIL:" && !count["FAIL:"]) count["FAIL:"] = 1
      if (n == 0 && status == 0) print "no test has a name like that"
      if ((n == 0 || status != 0) && !count["FAIL:"]) count["FAIL:"] = 1
      printf "%d passed, %d failed, %d skipped\n", count["PASS:"], count["FAIL:"], count["SKIP:"]
      exit count["FAIL:"] > 0
    }'
}
